// SPDX-License-Identifier: Apache-2.0
module stacktap.invalid/dashboard

go 1.26.0

require github.com/grafana/grafana-foundation-sdk/go v0.0.22

require github.com/prometheus/prometheus v0.316.0
