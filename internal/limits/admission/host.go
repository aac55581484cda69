package admission

import (
	"net"
	"net/netip"
	"strings"
)

// siteBits is the prefix length of an IPv6 address that counts as one host: one customer usually has a whole /64.
const siteBits = 64

// localHost is this machine. A client of a unix socket chooses the name of its end itself: any path, or an address.
const localHost = "unix"

// Host names where a connection comes from, for bounds of one host: the IPv4 address, the /64 of an IPv6 address, or this
// machine for all who come by a unix socket.
func Host(from net.Addr) string {
	if strings.HasPrefix(from.Network(), "unix") {
		return localHost
	}
	text := from.String()
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return text
	}
	ip = ip.Unmap()
	if ip.Is4() {
		return ip.String()
	}
	site, err := ip.WithZone("").Prefix(siteBits)
	if err != nil {
		return text
	}
	return site.String()
}
