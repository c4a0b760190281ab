// SPDX-License-Identifier: Apache-2.0
module stacktap.invalid/broker

go 1.25

require github.com/twmb/franz-go/pkg/kfake v0.0.0-20260515175617-8268a5d078c0
