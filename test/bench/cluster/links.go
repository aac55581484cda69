package cluster

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/distance"
)

// Links are the lines between the members of a cluster: each pair has one of its own in each direction.
type Links struct {
	each    [][]*distance.Link // from, to
	proxies []net.Listener
}

// newLinks makes links between so many members, which way says the length of, one way.
func newLinks(members int, way func(from, to int) time.Duration) *Links {
	l := &Links{each: make([][]*distance.Link, members)}
	for i := range l.each {
		l.each[i] = make([]*distance.Link, members)
		for j := range l.each[i] {
			l.each[i][j] = &distance.Link{}
			l.each[i][j].SetDelay(way(i, j))
		}
	}
	return l
}

// front puts a proxy before the next member's address. It asks the kernel which member connects there, so that servers need no
// flag for it.
func (l *Links) front(address string) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	to := len(l.proxies)
	l.proxies = append(l.proxies, listener)
	go distance.Pass(listener, address, func(from net.Addr) (there, back *distance.Link, err error) {
		i, err := memberAt(from, len(l.each))
		if err != nil {
			return nil, nil, err
		}
		return l.each[i][to], l.each[to][i], nil
	})
	return listener.Addr().String(), nil
}

// memberAt is the member, from zero, whose process has a connection's other end.
func memberAt(from net.Addr, members int) (int, error) {
	line, err := distance.Owner(from)
	if err != nil {
		return 0, err
	}
	for _, argument := range line {
		if name, ok := strings.CutPrefix(argument, "--name=m"); ok {
			number, err := strconv.Atoi(name)
			if err != nil || number < 1 || number > members {
				return 0, fmt.Errorf("member %q has no place", name)
			}
			return number - 1, nil
		}
	}
	return 0, fmt.Errorf("%q is no member", line)
}

// SetRate gives every link so many bytes a second; zero: as many as there are.
func (l *Links) SetRate(bytesPerSecond int64) {
	for _, row := range l.each {
		for _, link := range row {
			link.SetRate(bytesPerSecond)
		}
	}
}

// Carried is how many bytes links have carried: from, to.
type Carried [][]int64

// Carried is what each link has carried so far.
func (l *Links) Carried() Carried {
	all := make(Carried, len(l.each))
	for i, row := range l.each {
		for _, link := range row {
			all[i] = append(all[i], link.Bytes())
		}
	}
	return all
}

// Since subtracts what the links had carried before.
func (c Carried) Since(before Carried) Carried {
	all := make(Carried, len(c))
	for i := range c {
		for j := range c[i] {
			all[i] = append(all[i], c[i][j]-before[i][j])
		}
	}
	return all
}

// Sum is what all links have carried.
func (c Carried) Sum() (sum int64) {
	for _, row := range c {
		for _, n := range row {
			sum += n
		}
	}
	return sum
}

// Close ends the proxies.
func (l *Links) Close() {
	for _, p := range l.proxies {
		_ = p.Close()
	}
}
