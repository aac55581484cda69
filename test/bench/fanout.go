package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/test/bench/audience"
)

// fanOut has one client write one key that many watch, and measures from the begin of a write until a watch is told of it.
func fanOut(ctx context.Context, p *plan, s server) (all []figures, err error) {
	for _, watchers := range p.watchers {
		f, err := fanOutTo(ctx, p, s, watchers)
		if err != nil {
			return all, fmt.Errorf("%d watchers: %w", watchers, err)
		}
		all = append(all, f)
	}
	return all, nil
}

func fanOutTo(ctx context.Context, p *plan, s server, watchers int) (f figures, err error) {
	streams := min(p.watchStreams, watchers)
	f = newFigures(fmt.Sprintf("watch w=%d s=%d", watchers, streams))
	c, _, err := newCluster(ctx, s, p.dir)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, c.remove()) }()
	writer, err := connect(c.members[0].clientAddr)
	if err != nil {
		return f, err
	}
	a := audience.New(watchers)
	defer func() { err = errors.Join(err, a.Close(), writer.Close()) }()
	err = a.Open(ctx, streams, func(i int) (*clientv3.Client, error) {
		return connect(c.members[i%len(c.members)].clientAddr)
	})
	if err != nil {
		return f, err
	}
	values := newChooser(1)
	write := func(length time.Duration) error {
		for begun := time.Now(); time.Since(begun) < length; {
			if err := a.Tell(ctx, writer, values.value()); err != nil {
				return err
			}
		}
		return nil
	}
	if err := write(p.warm); err != nil {
		return f, err
	}
	c.forgetPeaks()
	a.Measure()
	from := c.read()
	if err := write(p.length); err != nil {
		return f, err
	}
	to := c.read()
	f.set(residentMiB, c.resident("VmHWM"))
	f.charge(from, to, []*worker{{times: a.Times()}})
	return f, nil
}
