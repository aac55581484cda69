package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/distance"
)

// linked is a cluster of which every pair of members has a link of its own in each direction.
type linked struct {
	*cluster.Cluster
	links   [][]*distance.Link // from, to
	proxies []net.Listener
}

// startLinked starts so many members, with links that delay says the length of, one way.
func startLinked(
	ctx context.Context, s cluster.Server, dir string, size int, delay func(from, to int) time.Duration,
) (*linked, error) {
	l := &linked{links: make([][]*distance.Link, size)}
	for i := range l.links {
		l.links[i] = make([]*distance.Link, size)
		for j := range l.links[i] {
			l.links[i][j] = &distance.Link{}
			l.links[i][j].SetDelay(delay(i, j))
		}
	}
	var err error
	l.Cluster, _, err = cluster.StartBehind(ctx, s, dir, size, l.front)
	if err != nil {
		l.closeProxies()
		return nil, err
	}
	return l, nil
}

// front puts a proxy before the next member's address. Who connects there is asked of the kernel.
func (l *linked) front(address string) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	to := len(l.proxies)
	l.proxies = append(l.proxies, listener)
	go distance.Pass(listener, address, func(from net.Addr) (there, back *distance.Link, err error) {
		i, err := memberAt(from, len(l.links))
		if err != nil {
			return nil, nil, err
		}
		return l.links[i][to], l.links[to][i], nil
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

// narrow gives every link so many bytes a second; zero: as many as there are.
func (l *linked) narrow(bytesPerSecond int64) {
	for _, row := range l.links {
		for _, link := range row {
			link.SetRate(bytesPerSecond)
		}
	}
}

// carried is what each link has carried so far: from, to.
func (l *linked) carried() [][]int64 {
	all := make([][]int64, len(l.links))
	for i, row := range l.links {
		for _, link := range row {
			all[i] = append(all[i], link.Bytes())
		}
	}
	return all
}

// since subtracts what the links had carried before.
func since(now, before [][]int64) (all [][]int64, sum int64) {
	for i := range now {
		row := make([]int64, len(now[i]))
		for j := range row {
			row[j] = now[i][j] - before[i][j]
			sum += row[j]
		}
		all = append(all, row)
	}
	return all, sum
}

// place is where a member stands in the list.
func (l *linked) place(m *cluster.Member) int {
	for i, each := range l.Members {
		if each == m {
			return i
		}
	}
	return -1
}

func (l *linked) remove() error {
	err := l.Remove()
	l.closeProxies()
	return err
}

func (l *linked) closeProxies() {
	for _, p := range l.proxies {
		_ = p.Close()
	}
}

// serverFlags gives one of servers more flags: NAME=FLAG,FLAG.
func serverFlags(servers *[]cluster.Server) func(string) error {
	return func(text string) error {
		name, list, _ := strings.Cut(text, "=")
		for i := range *servers {
			if s := &(*servers)[i]; s.Name == name {
				s.Flags = append(s.Flags, strings.Split(list, ",")...)
				return nil
			}
		}
		return fmt.Errorf("no --server %q before it", name)
	}
}

// medianOf sorts times and returns the one in the middle.
func medianOf(times []time.Duration) time.Duration { return quantile(times, 0.5) }

// quantile sorts times and returns the one at a share of them.
func quantile(times []time.Duration, share float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[int(share*float64(len(times)-1))]
}
