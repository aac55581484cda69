package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/test/bench/cluster"
)

const (
	kvRange = "/etcdserverpb.KV/Range"
	kvPut   = "/etcdserverpb.KV/Put"
	watches = "/etcdserverpb.Watch/Watch"
	renewal = "/etcdserverpb.Lease/LeaseKeepAlive"
	health  = "/grpc.health.v1.Health/Watch"

	peerMessages = "/quorate.Peer/Messages"
	peerSnapshot = "/quorate.Peer/Snapshot"
	peerCall     = "/quorate.Peer/Call"

	megabyte = 1_000_000
)

// holdings are the attacks of the second review, and what is like them.
var holdings = []holding{
	{name: "deaf ranges", path: kvRange, message: rangeOf, hosts: 1, conns: 2, streams: 9900, ends: true},
	{name: "deaf ranges, 8 hosts", path: kvRange, message: rangeOf, hosts: 8, conns: 1, streams: 3000, ends: true},
	{name: "half-sent puts", path: kvPut, message: putOf, size: megabyte, part: true, window: 65535, hosts: 1, conns: 1,
		streams: 500},
	{name: "half-sent puts, 8 hosts", path: kvPut, message: putOf, size: megabyte, part: true, window: 65535, hosts: 8,
		conns: 1, streams: 100},
	{name: "half-sent watches", path: watches, message: putOf, size: megabyte, part: true, window: 65535, hosts: 1, conns: 1,
		streams: 1000},
	{name: "long names of services", path: health, message: putOf, size: megabyte, window: 65535, hosts: 1, conns: 1,
		streams: 300, ends: true},
	{name: "idle streams, 8 hosts", path: watches, window: 65535, hosts: 8, conns: 2, streams: 9900},
	{name: "deaf watches", path: watches, message: watchOf, hosts: 2, conns: 1, streams: 9900},
	{name: "long metadata", path: watches, metadata: 15_000, window: 65535, hosts: 2, conns: 1, streams: 5000},
	{name: "large reads", path: kvRange, message: readOf, size: megabyte, window: 65535, hosts: 2, conns: 1, streams: 500,
		ends: true},
	{name: "idle connections", hosts: 8, conns: 2000},
	{name: "peer port: half-sent frames", peer: true, path: peerMessages, message: putOf, size: megabyte, part: true,
		window: 65535, hosts: 1, conns: 4, streams: 250},
	{name: "peer port: half-sent snapshots, 8 hosts", peer: true, path: peerSnapshot, message: putOf, size: megabyte,
		part: true, window: 65535, hosts: 8, conns: 4, streams: 250},
	{name: "peer port: half-sent calls, 8 hosts", peer: true, path: peerCall, message: putOf, size: megabyte, part: true,
		window: 65535, hosts: 8, conns: 20, streams: 250},
	{name: "peer port: idle streams, 8 hosts", peer: true, path: peerMessages, window: 65535, hosts: 8, conns: 100,
		streams: 250},
	{name: "peer port: idle connections", peer: true, hosts: 8, conns: 2000},
}

func rangeOf(int) proto.Message {
	return &pb.RangeRequest{Key: []byte("held"), RangeEnd: []byte("hele"), Serializable: true}
}

func putOf(size int) proto.Message  { return &pb.PutRequest{Key: make([]byte, size)} }
func readOf(size int) proto.Message { return &pb.RangeRequest{Key: make([]byte, size)} }
func watchOf(int) proto.Message {
	create := &pb.WatchCreateRequest{Key: []byte("held")}
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}
}

// heldBytes is a value that deaf ranges read: below the size from which answers are counted by themselves.
const heldBytes = 61_000

// hold measures what attacks make a member hold, in a memory control group of half as much again as its limit, and how others
// fare.
func hold(ctx context.Context, arguments []string) error {
	p := &limitPlan{}
	var limits, only string
	var mostWait time.Duration
	var drawn int
	var seed uint64
	flags := flag.NewFlagSet("hold", flag.ExitOnError)
	cluster.ServerFlag(flags, &p.servers)
	flags.StringVar(&p.dir, "dir", "", "where data lies while a cluster runs: on the disk to test, not in memory")
	flags.StringVar(&limits, "memory", "512MiB", "values of the flag --memory to try, in MiB")
	flags.DurationVar(&p.length, "duration", 10*time.Second, "of one attack")
	flags.IntVar(&drawn, "draw", 0, "draw so many attacks instead of those that are known")
	flags.StringVar(&only, "only", "", "only attacks whose names have this in them")
	flags.DurationVar(&mostWait, "p99", 0, "fail also if others' puts have a larger one; 0: whatever it is")
	flags.Uint64Var(&seed, "seed", 1, "of the first one that is drawn")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if len(p.servers) != 1 || p.dir == "" || flags.NArg() > 0 {
		return errors.New("hold: want one --server and --dir, and nothing but flags")
	}
	attacks := slices.Concat(holdings, workings)
	if drawn > 0 {
		attacks = nil
		for i := range uint64(drawn) {
			attacks = append(attacks, draw(seed+i))
		}
	}
	attacks = slices.DeleteFunc(slices.Clone(attacks), func(h holding) bool { return !strings.Contains(h.name, only) })
	if len(attacks) == 0 {
		return fmt.Errorf("hold: --only %s: no attack has that in its name", only)
	}
	var above error
	for _, limit := range strings.Split(limits, ",") {
		above = errors.Join(above, p.holdAt(ctx, limit, mostWait, attacks))
	}
	return above
}

// holdAt makes each attack on a fresh cluster with a limit, prints what the members took, and returns which were too much.
func (p *limitPlan) holdAt(ctx context.Context, limit string, mostWait time.Duration, attacks []holding) (above error) {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "--memory\tattack\tpeak MiB\tafterwards\tothers' puts: p50\tp99\tfailed\trenewals failed\tstart\tgroup")
	for i := range attacks {
		if err := p.holdOne(ctx, table, limit, mostWait, &attacks[i]); err != nil {
			above = errors.Join(above, fmt.Errorf("%s: %w", attacks[i].name, err))
		}
		if err := table.Flush(); err != nil || ctx.Err() != nil {
			return errors.Join(above, err, ctx.Err())
		}
	}
	return above
}

func (p *limitPlan) holdOne(
	ctx context.Context, table *tabwriter.Writer, limit string, mostWait time.Duration, h *holding,
) (err error) {
	var mib int64
	if _, err := fmt.Sscanf(limit, "%dMiB", &mib); err != nil {
		return fmt.Errorf("--memory %s: want a number of MiB: %w", limit, err)
	}
	s := p.servers[0]
	s.Flags, s.TLS = append(slices.Clone(s.Flags), "--memory="+limit), h.secure
	c, _, err := cluster.Start(ctx, s, p.dir)
	if err != nil {
		return err
	}
	group := "none"
	confined, release := c.Confine(mib << 20 * 3 / 2)
	if confined {
		group = fmt.Sprintf("%d MiB", mib*3/2)
	}
	defer func() { err = errors.Join(err, c.Remove(), release()) }()
	others, err := newBystander(ctx, c.Members[0].ClientAddr, h.users)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, others.close()) }()
	if err := h.fill.fillStore(others.named(ctx), others.kv, pb.NewLeaseClient(others.conn)); err != nil {
		return err
	}
	c.ForgetPeaks()
	end := h.begin(ctx, c.Members[0], others.token)
	others.watch(ctx, p.length)
	peak := c.Resident("VmHWM")
	if err := end(); err != nil {
		return err
	}
	cluster.Pause(ctx, settles)
	afterwards, start := c.Resident("VmRSS"), "-"
	for _, m := range c.Members {
		select {
		case <-m.Ended:
			return fmt.Errorf("%s ended:\n%s", m.Name, m.LastWords())
		default:
		}
	}
	const shown = time.Millisecond / 10
	if h.callers > 0 {
		took, err := others.killed(ctx, c)
		if err != nil {
			return err
		}
		start = took.Round(100 * time.Millisecond).String()
	}
	wait := others.puts.Quantile(0.99).Round(shown)
	fmt.Fprintf(table, "%s\t%s\t%.0f\t%.0f\t%s\t%s\t%d of %d\t%d\t%s\t%s\n", limit, h.name, peak, afterwards,
		others.puts.Quantile(0.5).Round(shown), wait, others.failed, others.puts.Count()+uint64(others.failed),
		others.unrenewed, start, group)
	if peak > float64(mib) {
		return fmt.Errorf("the largest member took %.0f MiB of %d", peak, mib)
	}
	if mostWait > 0 && wait > mostWait {
		return fmt.Errorf("others' puts have a p99 of %s, more than %s", wait, mostWait)
	}
	return nil
}

// settles is how long a member gets to give memory back.
const settles = 12 * time.Second
