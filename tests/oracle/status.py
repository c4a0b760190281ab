# SPDX-License-Identifier: Apache-2.0
"""What status_files wrote, against the manual page made from the table and against docs/otlp.md. Prints TAP.

usage: status.py WORK-DIRECTORY
"""
import collections
import json
import os
import re
import sys

from prometheus_client.openmetrics import parser

RESULTS = []


def tell(good, what, detail=""):
    RESULTS.append(bool(good))
    print(f"{'ok' if good else 'not ok'} {len(RESULTS)} - status: {what}")
    if not good and detail:
        print("\n".join("# " + line for line in str(detail).splitlines()[:20]))


def equal(have, want, what):
    tell(have == want, what, f"only here: {sorted(have - want)}\nmissing: {sorted(want - have)}")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def page_entries(text):
    """{(object, member): its meaning} of the manual's source."""
    entries, group, member = {}, None, None
    for line in text.split("# COUNTERS", 1)[1].split("# SEE ALSO")[0].replace("\\", "").splitlines():
        if line.startswith("## "):
            group = line[3:].split(":")[0] if ":" in line else line[3:]
        elif member and entries.get(member, "").endswith("++"):
            entries[member] = entries[member][:-2] + " " + line
        elif line.startswith(("*", "_")):
            member = (group, re.match(r"[*_](\w+?)[*_] \(", line)[1])
        elif line.startswith("\t"):
            entries[member] = line.strip()
    return entries


def status_members(status):
    """The same pairs, {: value}, of the daemon's JSON. The helpers' common members are a section of their own."""
    members, entries = {}, [(key, value) for key, value in status.items()]
    while entries:
        key, value = entries.pop()
        if key in ("pools", "relabel", "destinations", "threads"):
            members.update({(key, name): value[0][name] for name in value[0] if name not in ("name", "rule")})
        elif key == "user_end":
            members[key, "end"] = sum(value.values())
        elif key == "named_by":
            members[key, "source"] = sum(value.values())
        elif isinstance(value, dict):
            for name, inner in value.items():
                if isinstance(inner, dict):
                    entries.append((name, inner))
                else:
                    members[key, name] = inner
        else:
            members["The daemon itself", key] = value
    return members


HELPERS = "The opener, the parser and, for debuginfod, the fetcher, each in its object"


def fold_helpers(members):
    common = {name for key, name in members if key == "opener"} & {name for key, name in members if key == "parser"}
    return {(HELPERS if key in ("opener", "parser", "debuginfod") and name in common else key, name) for key, name in members}


def check_values(members):
    """Were two members made of one field, their numbers would be the same."""
    same = {("unwind", "guessed"), ("unwind", "no_mappings"), ("unwind", "unreadable")}
    numbers = collections.Counter(value for member, value in members.items()
                                  if isinstance(value, int) and not isinstance(value, bool) and
                                  member not in same and member[0] not in ("pools", "relabel", "threads"))
    tell(not [value for value, count in numbers.items() if count > 1], "no two counters are of one field",
         [member for member, value in members.items() if numbers.get(value, 0) > 1])
    tell(len(numbers) > 80, "there are many", len(numbers))


def check_text(text, members):
    tell("{" not in text, "every place in a line is filled in", text)
    for group, name in (("windows", "samples"), ("exporter", "payloads_sent"), ("unwind", "failed"),
                        ("spool", "damaged_bytes"), ("parser", "deferred"), ("debuginfod", "absent"), ("debuginfod", "timed_out"), ("unwind", "deferred_expired")):
        tell(re.search(rf"\b{members[group, name]}\b", text), f"the text has {group}.{name}", text)
    tell(re.search(r"quality: \d+\.\d % complete, \d+\.\d % named", text), "the text has shares", text)
    tell(f"compiled in {members['unwind', 'compile_nano'] // 10**6} ms" in text, "times are in ms", text)
    tell("  opener: started" in text and "  parser: started" in text and "  fetcher: started" in text, "each helper has its line", text)


def check_metrics(text, entries, members, pools, rules):
    """Read by the parser of Prometheus' own client, which is strict."""
    try:
        families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    except ValueError as error:
        tell(False, "the metrics are OpenMetrics", f"{error}\n{text}")
        return
    tell(text.endswith("# EOF\n"), "the metrics are OpenMetrics", text[-100:])
    wanted = {}
    for member, line in entries.items():
        found = re.search(r"\. _(stacktap_\w+)(\{\w+\})?_", line)
        if found:
            wanted[found[1]] = member
    samples = {sample.name: [] for family in families.values() for sample in family.samples}
    for family in families.values():
        for sample in family.samples:
            samples[sample.name].append(sample)
    equal(set(samples) - {"stacktap_info"}, set(wanted), "the manual has each metric, and no others")
    wrong = [name for name, member in wanted.items() if name in samples and member in members and
             member[0] not in ("pools", "relabel", "threads", "user_end", "named_by") and
             abs(samples[name][0].value * (10**9 if member[1].endswith(("_nano", "_ns")) else 1) - members[member]) > 2000]
    tell(not wrong, "each has the value that the JSON has", wrong)
    tell(all(family.type in ("counter", "gauge", "info") and family.documentation for family in families.values()),
         "each has a type and a meaning")
    tell([sample.labels["rule"] for sample in samples.get("stacktap_relabel_matched_total", [])] == rules,
         "a rule is the label that it is in the JSON")
    tell({sample.labels["pool"] for sample in samples["stacktap_pool_limit_bytes"]} == pools, "each pool is there")
    by_cpu = [name for name, member in wanted.items() if member[0] == "module"]
    tell(len(by_cpu) > 10 and all([sample.labels["cpu"] for sample in samples.get(name, [])] == ["0", "17"] for name in by_cpu),
         "each CPU has each number of the module", by_cpu)
    numbers = [sample.value for name in by_cpu for sample in samples.get(name, [])]
    tell(len(set(numbers)) == len(numbers), "no two of them are of one field", numbers)
    tell({sample.labels["thread"] for sample in samples["stacktap_thread_cpu_seconds_total"]} ==
         {"drain", "names", "export", "journal"}, "each thread is there")
    tell({sample.labels["helper"] for sample in samples["stacktap_helper_crashes_total"]} == {"opener", "parser", "fetcher"},
         "each helper is there")


class Query:
    """One expression, of the part of PromQL that the dashboard is written in; anything else is a ValueError."""

    TOKEN = re.compile(r'\s*(sum by|rate|unless on|[a-z_][a-z0-9_]*|\{instance=~"\$instance"\}|\[\$__rate_interval\]|"[^"\\]*"|[()+/,])')

    def __init__(self, text):
        self.tokens, self.metrics, at = [], [], 0       # metrics: (name, whether its rate is asked, by what it is summed)
        while at < len(text.rstrip()):
            found = self.TOKEN.match(text, at)
            if not found:
                raise ValueError(f"`{text[at:]}' in {text}")
            self.tokens.append(found[1])
            at = found.end()
        self.labels = self.sums()
        if self.tokens:
            self.take("or")
            self.match(self.labels, self.alone())
        if self.tokens:
            raise ValueError(f"`{' '.join(self.tokens)}' behind the end of {text}")

    def take(self, *wanted):
        token = self.tokens.pop(0) if self.tokens else None
        if wanted and token not in wanted:
            raise ValueError(f"`{token}' instead of {wanted}")
        return token

    @staticmethod
    def match(labels, others):
        """Both sides of an operator have to."""
        if labels != others:
            raise ValueError(f"by {labels} beside by {others}")

    def sums(self):
        labels = self.sum()
        while self.tokens[:1] in (["+"], ["/"]):
            self.take()
            self.match(labels, self.sum())
        return labels

    def alone(self):
        """Those sums of which the others have no instance, with one more label."""
        self.take("label_replace")
        self.take("(")
        labels = self.sums()
        self.take("unless on")
        self.take("(")
        on = self.take()
        self.take(")")
        if on not in labels or on not in self.sums():
            raise ValueError(f"not by {on}, which they are matched by")
        self.take(",")
        label = (self.take() or "").strip('"')
        for wanted in ((), ('""',), ('""',)):
            self.take(",")
            self.take(*wanted)
        self.take(")")
        return [*labels, label]

    def sum(self):
        self.take("sum by")
        self.take("(")
        labels = [self.take()]
        while self.take(",", ")") == ",":
            labels.append(self.take())
        self.take("(")
        is_rate = self.tokens[:1] == ["rate"]
        if is_rate:
            self.take()
            self.take("(")
        self.metrics.append((self.take(), is_rate, labels))
        self.take('{instance=~"$instance"}')
        if is_rate:
            self.take("[$__rate_interval]")
            self.take(")")
        self.take(")")
        return labels


def labels_of(text):
    """{metric: its labels} of what the endpoint says, and the one that Prometheus adds."""
    return {sample.name: {"instance", *sample.labels} for family in parser.text_string_to_metric_families(text)
            for sample in family.samples}


def check_dashboard(dashboard, text):
    """What Grafana asks of a dashboard, and whether Prometheus has an answer to each of its queries."""
    there, panels, wrong, cells = labels_of(text), dashboard["panels"], [], set()
    asked = set()
    for panel in panels:
        place = panel["gridPos"]
        own = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        if own & cells or max(x for x, _ in own) > 23 or panel["type"] not in ("row", "timeseries"):
            wrong.append(f"{panel['title']}: {place}")
        cells |= own
        for target in panel.get("targets", []):
            try:
                query = Query(target["expr"])
            except ValueError as error:
                wrong.append(str(error))
                continue
            asked |= {name for name, *_ in query.metrics}
            wrong += [f"{name}: a rate of what is no counter, or the reverse" for name, is_rate, _ in query.metrics
                      if name.endswith("_total") != is_rate]
            wrong += [f"{name} has no {label}" for name, _, labels in query.metrics for label in labels
                      if label not in there.get(name, ())]
            wrong += [f"{target['expr']}: {label} in its legend" for label in
                      re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]) if label not in query.labels]
            if target["datasource"]["uid"] != "${datasource}":
                wrong.append(f"{panel['title']}: {target['datasource']}")
    tell(not wrong, "each place and query of the dashboard is right", "\n".join(wrong))
    tell(asked <= set(there) and len(asked) > 35, f"and names metrics that there are, {len(asked)}", asked - set(there))
    tell(len({panel["id"] for panel in panels}) == len(panels) and
         all(len({target["refId"] for target in panel.get("targets", [])}) == len(panel.get("targets", [])) for panel in panels) and
         {variable["name"] for variable in dashboard["templating"]["list"]} == {"datasource", "instance"} and
         isinstance(dashboard["schemaVersion"], int) and dashboard["uid"] and dashboard["title"],
         "ids are of one panel each, and what is chosen from is there")
    tell(all(panel["description"].endswith(".") and panel["targets"] for panel in panels if panel["type"] != "row"),
         "each panel says what it shows")


def main():
    work = sys.argv[1]
    entries = page_entries(read(work, "page.scd"))
    status = json.loads(read(work, "status.json"))
    members = status_members(status)
    equal(fold_helpers(members), {entry for entry in entries if entry[0] != "module"},
          "the manual has each member of the JSON, and no others")
    check_values(members)
    check_text(read(work, "status"), members)
    check_metrics(read(work, "metrics"), entries, members, {pool["name"] for pool in status["pools"]},
                  [rule["rule"] for rule in status["relabel"]])
    check_dashboard(json.loads(read(work, "dashboard.json")), read(work, "metrics"))
    attributes = set(re.findall(r"of a Profile: _(stacktap\.\w+)_", "\n".join(entries.values())))
    rows = [line.split("|")[1] for line in read("docs", "otlp.md").splitlines() if line.startswith("| `")]
    documented = set()
    for cell in rows:
        names = re.findall(r"`([a-z_.]+)`", cell)
        documented |= {name if not name.startswith(".") else "stacktap" + name for name in names}
    tell(len(attributes) > 15 and attributes <= documented, "docs/otlp.md has each attribute of a Profile",
         attributes - documented)
    meanings = [meaning.split(". _")[0] for meaning in entries.values()]
    tell(all(len(meaning) > 5 for meaning in meanings), "each has a meaning", meanings)
    print(f"1..{len(RESULTS)}")
    return not all(RESULTS)


if __name__ == "__main__":
    sys.exit(main())
