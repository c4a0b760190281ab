// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat/compat.h"
#include "quota.h"
#include "ring.h"

enum {
	RING_META_PAGES = 2,	/* consumer and producer */
};

int st_ring_create(unsigned int cpu, u32 data_bytes, u32 watermark, struct stacktap_ring **ret_ring)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN;
	const gfp_t gfp_mapped = COMPAT_GFP_MAPPED | __GFP_NORETRY | __GFP_NOWARN | __GFP_ZERO;
	unsigned int nr_data = data_bytes >> PAGE_SHIFT, i;
	struct stacktap_ring *ring;
	struct page **map;
	int err;

	err = st_quota_take(data_bytes);
	if (err)
		return err;
	err = -ENOMEM;

	ring = kzalloc(sizeof(*ring), gfp);
	if (!ring)
		goto err_budget;

	ring->nr_pages = RING_META_PAGES + nr_data;
	ring->pages = kvcalloc(ring->nr_pages, sizeof(*ring->pages), gfp);
	if (!ring->pages)
		goto err_ring;
	for (i = 0; i < ring->nr_pages; i++) {
		ring->pages[i] = alloc_pages_node(cpu_to_node(cpu), gfp_mapped, 0);
		if (!ring->pages[i])
			goto err_pages;
	}

	map = kvmalloc_array(RING_META_PAGES + 2 * nr_data, sizeof(*map), gfp);
	if (!map)
		goto err_pages;
	for (i = 0; i < ring->nr_pages; i++)
		map[i] = ring->pages[i];
	for (i = 0; i < nr_data; i++)
		map[ring->nr_pages + i] = ring->pages[RING_META_PAGES + i];
	ring->area = vmap(map, RING_META_PAGES + 2 * nr_data, VM_MAP | VM_USERMAP, PAGE_KERNEL);
	kvfree(map);
	if (!ring->area)
		goto err_pages;

	ring->consumer = ring->area;
	ring->producer = ring->area + PAGE_SIZE;
	ring->data = ring->area + RING_META_PAGES * PAGE_SIZE;
	ring->data_bytes = data_bytes;
	ring->watermark = watermark;
	ring->producer->data_bytes = data_bytes;
	ring->producer->cpu = cpu;
	ring->producer->watermark = watermark;
	*ret_ring = ring;
	return 0;

err_pages:
	for (i = 0; i < ring->nr_pages && ring->pages[i]; i++)
		__free_page(ring->pages[i]);
	kvfree(ring->pages);
err_ring:
	kfree(ring);
err_budget:
	st_quota_return(data_bytes);
	return err;
}

void st_ring_destroy(struct stacktap_ring *ring)
{
	unsigned int i;

	if (!ring)
		return;
	vunmap(ring->area);
	for (i = 0; i < ring->nr_pages; i++)
		__free_page(ring->pages[i]);
	kvfree(ring->pages);
	st_quota_return(ring->data_bytes);
	kfree(ring);
}

u64 st_ring_used(const struct stacktap_ring *ring)
{
	u64 tail = READ_ONCE(ring->consumer->tail);
	u64 head = READ_ONCE(ring->head);

	return min(head - tail, ring->data_bytes);
}

static int ring_vma_refuse_split(struct vm_area_struct *vma, unsigned long addr)
{
	return -EINVAL;
}

static int ring_vma_refuse_mremap(COMPAT_MREMAP_ARGS)
{
	return -EINVAL;
}

static const struct vm_operations_struct ring_vm_ops = {
	.may_split = ring_vma_refuse_split,
	.mremap = ring_vma_refuse_mremap,
};

int st_ring_mmap(struct stacktap_ring *ring, struct vm_area_struct *vma, bool producer)
{
	unsigned long size = producer ? PAGE_SIZE + 2 * ring->data_bytes : PAGE_SIZE;
	int err;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_end - vma->vm_start != size ||
	    vma->vm_flags & VM_EXEC)
		return -EINVAL;
	if (producer) {
		if (vma->vm_flags & VM_WRITE)
			return -EPERM;
		compat_vm_flags_mod(vma, 0, VM_MAYWRITE);
	}
	compat_vm_flags_mod(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP, VM_MAYEXEC);

	err = remap_vmalloc_range(vma, ring->area, producer ? 1 : 0);
	if (err)
		return err;
	vma->vm_ops = &ring_vm_ops;
	return 0;
}
