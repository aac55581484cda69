package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/client"
)

// far measures writes of a client that is in no member's site: every member is as far from it as from each other.
func far(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("far", flag.ContinueOnError)
	var servers []server
	flags.Func("server", "NAME=PATH, again for each server; one named quorate is measured with its own client, too",
		func(text string) error {
			name, path, ok := strings.Cut(text, "=")
			if !ok {
				return fmt.Errorf("%q is not NAME=PATH", text)
			}
			servers = append(servers, server{name, path})
			return nil
		})
	dir := flags.String("dir", "", "directory for the data")
	size := flags.Int("members", 5, "members of each cluster")
	trip := flags.Duration("trip", 50*time.Millisecond, "round trip between any two of members and client")
	writers := flags.Int("clients", 4, "writers, on one connection to each member")
	natives := flags.Int("natives", 1, "clients of its own among which the writers are spread")
	length := flags.Duration("duration", 10*time.Second, "how long to write")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *dir == "" || len(servers) == 0 {
		return errors.New("far: --server and --dir are required")
	}
	fmt.Printf("%d members, every round trip %s, %d writers, %s; %s\n\n", *size, *trip, *writers, *length, machine())
	fmt.Printf("%-9s %-28s %8s %8s %8s %8s  %s\n", "server", "client", "p50 ms", "p90 ms", "p99 ms", "writes", "")
	for _, s := range servers {
		if err := farOne(ctx, s, *dir, *size, *writers, *natives, *trip/2, *length); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	ms := float64(trip.Microseconds()) / 1000
	fmt.Printf("\nBy arithmetic alone: one round trip %.0f ms, two %.0f, three %.0f.\n", ms, 2*ms, 3*ms)
	return nil
}

func farOne(ctx context.Context, s server, dir string, size, writers, natives int, delay, length time.Duration) error {
	var proxies []net.Listener
	defer func() {
		for _, l := range proxies {
			_ = l.Close()
		}
	}()
	c, _, err := newClusterOf(ctx, s, dir, size, func(address string) (string, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		proxies = append(proxies, l)
		go passOn(l, address, delay)
		return l.Addr().String(), nil
	})
	if err != nil {
		return err
	}
	defer func() { _ = c.remove() }()
	leader, follower, err := c.roles(ctx)
	if err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // members measure how far they are from each other
	options := clientv3.Config{DialTimeout: 5 * time.Second, DialOptions: []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialFar(ctx, address, delay)
		}),
	}}
	for _, row := range []struct{ name, endpoint string }{
		{"clientv3, through a follower", follower}, {"clientv3, through the leader", leader},
	} {
		config := options
		config.Endpoints = []string{row.endpoint}
		plain, err := clientv3.New(config)
		if err != nil {
			return err
		}
		err = farRow(ctx, s.name, row.name, []*clientv3.Client{plain}, writers, length, func() string { return "" })
		err = errors.Join(err, plain.Close())
		if err != nil {
			return err
		}
	}
	if s.name != "quorate" {
		return nil
	}
	for _, m := range c.members {
		options.Endpoints = append(options.Endpoints, m.clientAddr)
	}
	return farNatives(ctx, s.name, options, writers, natives, length)
}

// farNatives measures Quorate's own client, or several.
func farNatives(
	ctx context.Context, server string, options clientv3.Config, writers, natives int, length time.Duration,
) (err error) {
	var own []*client.Client
	var plain []*clientv3.Client
	for range natives {
		one, err := client.New(options)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, one.Close()) }()
		own, plain = append(own, one), append(plain, one.Client)
	}
	return farRow(ctx, server, fmt.Sprintf("its own, %d of them", natives), plain, writers, length, func() string {
		var all client.Stats
		for _, one := range own {
			stats := one.Stats()
			all.Writes, all.Offered, all.Won = all.Writes+stats.Writes, all.Offered+stats.Offered, all.Won+stats.Won
		}
		return fmt.Sprintf("%.1f%% offered to all, %.1f%% of these won", share(all.Offered, all.Writes),
			share(all.Won, all.Offered))
	})
}

func share(part, whole uint64) float64 { return 100 * float64(part) / float64(max(1, whole)) }

// roles returns where the leader and one of the others serve clients.
func (c *cluster) roles(ctx context.Context) (leader, follower string, err error) {
	for _, m := range c.members {
		status, err := c.control.Status(ctx, m.clientAddr)
		switch {
		case err != nil:
			return "", "", err
		case status.Leader == status.Header.MemberId:
			leader = m.clientAddr
		default:
			follower = m.clientAddr
		}
	}
	if leader == "" {
		return "", "", errors.New("nobody leads")
	}
	return leader, follower, nil
}

// farRow writes distinct keys one after another from each writer, and prints how long they took. The first second, in which
// connections are made, does not count.
func farRow(
	ctx context.Context, server, name string, clients []*clientv3.Client, writers int, length time.Duration,
	remark func() string,
) error {
	begin := time.Now().Add(time.Second)
	end := begin.Add(length)
	var mu sync.Mutex
	var took []time.Duration
	var failed error
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := 0; ; n++ {
				begun := time.Now()
				if begun.After(end) {
					return
				}
				_, err := clients[w%len(clients)].Put(ctx, fmt.Sprintf("far/%d/%d", w, n), "value")
				mu.Lock()
				if failed = errors.Join(failed, err); begun.After(begin) {
					took = append(took, time.Since(begun))
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	if failed != nil {
		return failed
	}
	slices.Sort(took)
	at := func(share float64) float64 {
		return float64(took[int(share*float64(len(took)-1))].Microseconds()) / 1000
	}
	fmt.Printf("%-9s %-28s %8.1f %8.1f %8.1f %8d  %s\n", server, name, at(0.5), at(0.9), at(0.99), len(took), remark())
	return nil
}

// passOn connects whoever comes to an address that is far away.
func passOn(l net.Listener, address string, delay time.Duration) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		out, err := dialFar(context.Background(), address, delay)
		if err != nil {
			_ = in.Close()
			continue
		}
		for _, pair := range [2][2]net.Conn{{in, out}, {out, in}} {
			go func() {
				_, _ = io.Copy(pair[0], pair[1])
				_ = in.Close()
				_ = out.Close()
			}()
		}
	}
}

// farConn is a connection on which everything arrives later, in order, without holding up whoever writes.
type farConn struct {
	net.Conn
	delay   time.Duration
	out, in chan parcel
	rest    []byte
	closed  chan struct{}
	once    sync.Once
}

type parcel struct {
	due   time.Time
	bytes []byte
}

func dialFar(ctx context.Context, address string, delay time.Duration) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	f := &farConn{
		Conn: conn, delay: delay, closed: make(chan struct{}), out: make(chan parcel, 1<<14), in: make(chan parcel, 1<<14),
	}
	go f.send()
	go f.receive()
	return f, nil
}

// Write implements net.Conn.
func (f *farConn) Write(p []byte) (int, error) {
	select {
	case f.out <- parcel{time.Now().Add(f.delay), slices.Clone(p)}:
		return len(p), nil
	case <-f.closed:
		return 0, net.ErrClosed
	}
}

// Read implements net.Conn.
func (f *farConn) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		next, ok := <-f.in
		if !ok {
			return 0, io.EOF
		}
		time.Sleep(time.Until(next.due))
		f.rest = next.bytes
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// Close implements net.Conn. What is under way is lost.
func (f *farConn) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.Conn.Close()
}

func (f *farConn) send() {
	for {
		select {
		case next := <-f.out:
			time.Sleep(time.Until(next.due))
			if _, err := f.Conn.Write(next.bytes); err != nil {
				_ = f.Close()
				return
			}
		case <-f.closed:
			return
		}
	}
}

func (f *farConn) receive() {
	defer close(f.in)
	for {
		buffer := make([]byte, 32<<10)
		n, err := f.Conn.Read(buffer)
		if n > 0 {
			select {
			case f.in <- parcel{time.Now().Add(f.delay), buffer[:n]}:
			case <-f.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// SetDeadline, SetReadDeadline and SetWriteDeadline implement net.Conn and do nothing: gRPC has deadlines of its own above.
func (f *farConn) SetDeadline(time.Time) error      { return nil }
func (f *farConn) SetReadDeadline(time.Time) error  { return nil }
func (f *farConn) SetWriteDeadline(time.Time) error { return nil }
