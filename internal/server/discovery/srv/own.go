package srv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Place is where a process says that others reach it: a peer URL.
type Place struct {
	Secure  bool
	Address string // host:port
}

// The refusals of Own.
var (
	ErrNotNamed = errors.New("cannot find local etcd member in SRV records")
	ErrTwice    = errors.New("more than one of the SRV records leads to this member")
	ErrScheme   = errors.New("scheme mismatch")
)

// Own returns the index of the record that leads to one of the places: it names the same host, or a host with a common address,
// and the same port. It does not resolve what is written alike: a host may be found in DNS only once its process serves.
func Own(ctx context.Context, resolver Resolver, records []Record, places []Place) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	m := matching{ctx: ctx, resolver: resolver, addresses: map[string][]string{}}
	found := -1
	var other error
	for i := range records {
		for _, p := range places {
			if !m.same(&records[i], p) {
				continue
			}
			switch {
			case records[i].Secure != p.Secure:
				other = fmt.Errorf("%w: DNS has %s, and this member advertises %s the other way (http, https)", ErrScheme,
					records[i].URL(), p.Address)
			case found >= 0 && found != i:
				return -1, fmt.Errorf("%w: %s and %s", ErrTwice, records[found].URL(), records[i].URL())
			default:
				found = i
			}
		}
	}
	switch {
	case found >= 0:
		return found, nil
	case other != nil:
		return -1, other
	}
	return -1, errors.Join(ErrNotNamed, m.failed)
}

// matching compares places, and asks for the addresses of each host once.
type matching struct {
	ctx       context.Context
	resolver  Resolver
	addresses map[string][]string // of a host; none if it could not be resolved
	failed    error
}

func (m *matching) same(r *Record, p Place) bool {
	host, port, err := net.SplitHostPort(p.Address)
	if err != nil || port != strconv.Itoa(int(r.Port)) {
		return false
	}
	if strings.EqualFold(strings.TrimSuffix(host, "."), r.Host) {
		return true
	}
	own := m.resolve(host)
	return slices.ContainsFunc(m.resolve(r.Host), func(a string) bool { return slices.Contains(own, a) })
}

func (m *matching) resolve(host string) []string {
	if known, asked := m.addresses[host]; asked {
		return known
	}
	found, err := m.resolver.LookupHost(m.ctx, host)
	if err != nil {
		m.failed = errors.Join(m.failed, err)
	}
	m.addresses[host] = found
	return found
}
