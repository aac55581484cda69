// Package srv finds the members of a cluster in the SRV records of a domain, under the names that etcd looks for:
//
//	_etcd-server-ssl._tcp.DOMAIN    peer URLs with https      _etcd-client-ssl._tcp.DOMAIN    client URLs with https
//	_etcd-server._tcp.DOMAIN        peer URLs with http       _etcd-client._tcp.DOMAIN        client URLs with http
//
// With a service name they are _etcd-server-ssl-NAME._tcp.DOMAIN and so on. A server reads them once, when it founds or joins a
// cluster; gateways and proxies when they start.
//
// It is not a resolver: that is a port, which *net.Resolver is. It connects to no server: the client that connects verifies
// the server that was found.
//
// Invariants:
//  1. Answers of DNS are not trusted: a name has 256 records at most, and an invalid host name is an error.
//  2. A list of servers is whole: if one of the two names cannot be asked, there is none. Members that saw different lists
//     would found different clusters.
//
// All functions may be called concurrently.
package srv
