// SPDX-License-Identifier: Apache-2.0
module stacktap.invalid/broker

go 1.26.0

// kfake itself asks for an older one, which it does not build with
require github.com/twmb/franz-go v1.22.3

require github.com/twmb/franz-go/pkg/kfake v0.0.0-20260918054303-01f206a7e32c
