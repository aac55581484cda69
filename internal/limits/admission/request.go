package admission

import (
	"net"
	"net/http"
	"net/netip"
)

// AddressOf is the address of the client of a request, as gRPC would show it. A client of a unix socket may give itself a name
// that looks like an address.
func AddressOf(r *http.Request) net.Addr {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && ok && local.Network() == "tcp" {
		return net.TCPAddrFromAddrPort(at)
	}
	return &net.UnixAddr{Name: r.RemoteAddr, Net: "unix"}
}
