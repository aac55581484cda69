package srv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// maxRecords bounds how many records one answer may have.
	maxRecords = 256
	// timeout bounds all questions of one lookup. A resolver asks each of its servers twice, for five seconds.
	timeout = 20 * time.Second
)

// Kind says whom to look for: the first part of the records' names.
type Kind string

// The kinds.
const (
	Servers Kind = "etcd-server" // at their peer URLs
	Clients Kind = "etcd-client" // servers, too, at their client URLs
)

// Resolver is what is asked of DNS: *net.Resolver.
type Resolver interface {
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
	LookupHost(ctx context.Context, host string) ([]string, error)
}

// Query is where to look.
type Query struct {
	Resolver Resolver // nil: that of the system
	Domain   string
	Service  string // follows the kind in the records' names; empty: nothing does
}

// Record is where one member is said to be.
type Record struct {
	Secure           bool   // by TLS
	Host             string // without a dot at its end
	Port             uint16
	Priority, Weight uint16 // RFC 2782: of lower priorities all are tried first
}

// Address is host:port.
func (r *Record) Address() string { return net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port))) }

// URL is the address with its scheme.
func (r *Record) URL() string {
	if r.Secure {
		return "https://" + r.Address()
	}
	return "http://" + r.Address()
}

// ErrNone is the error of a domain that has no such records.
var ErrNone = errors.New("there are none")

// Lookup returns the records of a kind, those with TLS first, in the order of their addresses. There is at least one.
func Lookup(ctx context.Context, q Query, kind Kind) ([]Record, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var all []Record
	var failed error
	for _, secure := range []bool{true, false} {
		found, err := q.ask(ctx, kind, secure)
		all, failed = append(all, found...), errors.Join(failed, err)
	}
	// A client needs one member that it can reach; servers need all.
	if failed != nil && (kind == Servers || len(all) == 0) {
		return nil, fmt.Errorf("error querying DNS SRV records: %w", failed)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("error querying DNS SRV records: %s and %s: %w", q.name(kind, true), q.name(kind, false),
			ErrNone)
	}
	if kind == Servers { // each is a member
		if twice := repeated(all); twice != "" {
			return nil, fmt.Errorf("%s and %s both name %s", q.name(kind, true), q.name(kind, false), twice)
		}
	}
	return all, nil
}

// repeated returns an address that two records have, empty if there is none.
func repeated(records []Record) string {
	seen := map[string]bool{}
	for i := range records {
		address := records[i].Address()
		if seen[address] {
			return address
		}
		seen[address] = true
	}
	return ""
}

// ask asks for one name. That it does not exist is no error.
func (q *Query) ask(ctx context.Context, kind Kind, secure bool) ([]Record, error) {
	resolver := q.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	_, answers, err := resolver.LookupSRV(ctx, q.service(kind, secure), "tcp", q.Domain)
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", q.name(kind, secure), err)
	case len(answers) > maxRecords:
		return nil, fmt.Errorf("%s has %d records, more than %d", q.name(kind, secure), len(answers), maxRecords)
	}
	records := make([]Record, len(answers))
	for i, a := range answers {
		r := Record{Secure: secure, Host: strings.TrimSuffix(a.Target, "."), Port: a.Port, Priority: a.Priority,
			Weight: a.Weight}
		if !isHost(r.Host) || r.Port == 0 {
			return nil, fmt.Errorf("%s names %q, port %d, which is no place to connect to", q.name(kind, secure),
				clip(a.Target), a.Port)
		}
		records[i] = r
	}
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port))
	})
	if twice := repeated(records); twice != "" {
		return nil, fmt.Errorf("%s names %s twice", q.name(kind, secure), twice)
	}
	return records, nil
}

func (q *Query) service(kind Kind, secure bool) string {
	name := string(kind)
	if secure {
		name += "-ssl"
	}
	if q.Service != "" {
		name += "-" + q.Service
	}
	return name
}

// name is how a question is written in a zone file.
func (q *Query) name(kind Kind, secure bool) string {
	return "_" + q.service(kind, secure) + "._tcp." + q.Domain
}

// maxHostBytes is the length of a name in DNS.
const maxHostBytes = 253

// isHost tells whether a name can stand in a URL and in a list.
func isHost(name string) bool {
	ok := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.:", c)
	}
	return name != "" && len(name) <= maxHostBytes && !strings.ContainsFunc(name, func(c rune) bool { return !ok(c) })
}

// clip keeps a name from filling a line of the log.
func clip(name string) string { return name[:min(len(name), 64)] }
