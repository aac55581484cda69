// Package monitoring runs alerts and dashboards against what a cluster really shows: those of contrib/monitoring, and those of
// etcd's mixin, with the query engine of Prometheus itself.
//
// It is a module of its own, so that the product requires nothing of Prometheus's server. The mixin comes from the Go module
// of etcd, and nothing of it is copied. Run it with `make monitoring`. A cluster of three processes is scraped, filled, and
// loses one member and then the second; time between scrapes is made up, so that nothing waits for it.
package monitoring
