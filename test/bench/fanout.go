package main

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"

	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/test/bench/audience"
)

// fanOut has one client write one key that many watch, and measures from the begin of a write until a watch is told of it.
func fanOut(ctx context.Context, p *plan, s cluster.Server) (all []figures.Row, err error) {
	for _, watchers := range p.watchers {
		f, err := fanOutTo(ctx, p, s, watchers)
		if err != nil {
			return all, fmt.Errorf("%d watchers: %w", watchers, err)
		}
		all = append(all, f)
	}
	return all, nil
}

func fanOutTo(ctx context.Context, p *plan, s cluster.Server, watchers int) (f figures.Row, err error) {
	streams := min(p.watchStreams, watchers)
	f = figures.NewRow(fmt.Sprintf("watch w=%d s=%d", watchers, streams))
	c, _, err := cluster.Start(ctx, s, p.dir)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, c.Remove()) }()
	writer, err := cluster.Connect(c.Members[0].ClientAddr)
	if err != nil {
		return f, err
	}
	a := audience.New(watchers)
	defer func() { err = errors.Join(err, a.Close(), writer.Close()) }()
	err = a.Open(ctx, streams, func(i int) (*clientv3.Client, error) {
		return cluster.Connect(c.Members[i%len(c.Members)].ClientAddr)
	})
	if err != nil {
		return f, err
	}
	values := load.NewChooser(1)
	write := func(length time.Duration) error {
		for begun := time.Now(); time.Since(begun) < length; {
			if err := a.Tell(ctx, writer, values.Value()); err != nil {
				return err
			}
		}
		return nil
	}
	if err := write(p.warm); err != nil {
		return f, err
	}
	c.ForgetPeaks()
	a.Measure()
	from := c.Read()
	if err := write(p.length); err != nil {
		return f, err
	}
	to := c.Read()
	f.Set(figures.ResidentMiB, c.Resident("VmHWM"))
	load.Charge(&f, from, to, []*load.Worker{{Times: a.Times()}})
	return f, nil
}
