// Package httpapi serves the HTTP side of a member: /version, /metrics, /debug/vars and what internal/rpc/health has, under
// etcd's paths and in etcd's forms.
//
// It does not listen: internal/server does, and internal/rpc/portmux sorts connections. The API as JSON is package gateway.
//
// The main type is API; Handler is for clients, MetricsHandler for the URLs of --listen-metrics-urls.
//
// Invariants:
//  1. A request that is not encrypted and calls the member by a name that is not allowed is refused before any handler.
//  2. A scrape that no client reads ends, and its connection serves other requests afterwards.
//
// All methods may be called concurrently.
package httpapi
