package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/rawcalls"
)

// holding is an attack on what a member holds for its clients.
type holding struct {
	name     string
	path     string
	message  func(size int) proto.Message
	size     int    // of the message
	window   uint32 // that the client leaves for answers
	part     bool   // the message is half-sent
	ends     bool   // the client says that nothing follows
	metadata int
	hosts    int // addresses that it comes from
	conns    int // of each
	streams  int // of each connection

	messages int           // of each call, if it is more than one
	pause    time.Duration // of each call before its last message
	resets   bool          // the client gives each call up at once
	secure   bool          // by TLS
	json     bool          // by the JSON gateway: message is a body of any text
	upgrades bool          // to a websocket
	users    bool          // there are users, and the client has not logged in
	token    string        // that it shows; loggedIn: one of a login
	peer     bool          // to the peer port, where no member knows the client
}

// loggedIn stands for the token of a user.
const loggedIn = "logged in"

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

// begin makes the calls of an attack, and returns what ends them. What a member refuses is what is to be seen.
func (h *holding) begin(ctx context.Context, m *cluster.Member, token string) (end func() error) {
	var mu sync.Mutex
	var open []io.Closer
	var working sync.WaitGroup
	address := m.ClientAddr
	switch {
	case h.peer:
		address = m.PeerAddr
	case h.secure:
		address = m.SecureAddr
	}
	if h.token != loggedIn {
		token = h.token
	}
	for i := range h.hosts * h.conns {
		working.Go(func() {
			send, c, err := h.dial(fmt.Sprintf("127.0.2.%d", 1+i%h.hosts), address, token)
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			for range h.streams {
				if ctx.Err() != nil || send() != nil {
					return
				}
			}
		})
	}
	return func() error {
		mu.Lock()
		for _, c := range open {
			_ = c.Close() // those that the member has closed fail
		}
		mu.Unlock()
		working.Wait()
		return nil
	}
}

// dial opens a connection, and returns what makes one call on it.
func (h *holding) dial(from, address, token string) (send func() error, closes io.Closer, err error) {
	if h.json {
		c, err := rawcalls.DialPlain(from, address, h.secure)
		request := rawcalls.Request{Path: h.path, Token: token, Body: h.body(), Upgrade: h.upgrades}
		if h.part {
			request.Announced = len(request.Body) + 1000
		}
		return func() error { return c.Send(request) }, c, err
	}
	c, err := rawcalls.Dial(from, address, h.secure, h.window)
	call := h.call(token)
	return func() error { return c.Send(call) }, c, err
}

func (h *holding) call(token string) rawcalls.Call {
	call := rawcalls.Call{Path: h.path, Token: token, Metadata: strings.Repeat("{", h.metadata), Ends: h.ends,
		Messages: h.messages, Pause: h.pause, Resets: h.resets}
	if h.message != nil {
		call.Message, _ = proto.Marshal(h.message(h.size))
	}
	if h.part {
		call.Announced, call.Ends = len(call.Message)+1000, false
	}
	return call
}

// body is the message as JSON.
func (h *holding) body() []byte {
	if h.message == nil {
		return nil
	}
	text, _ := protojson.Marshal(h.message(h.size))
	return text
}

// heldBytes is a value that deaf ranges read: below the size from which answers are counted by themselves.
const heldBytes = 61_000

// hold measures what attacks make a member hold, in a memory control group of half as much again as its limit, and how others
// fare.
func hold(ctx context.Context, arguments []string) error {
	p := &limitPlan{}
	var limits, only string
	var drawn int
	var seed uint64
	flags := flag.NewFlagSet("hold", flag.ExitOnError)
	cluster.ServerFlag(flags, &p.servers)
	flags.StringVar(&p.dir, "dir", "", "where data lies while a cluster runs: on the disk to test, not in memory")
	flags.StringVar(&limits, "memory", "512MiB", "values of the flag --memory to try, in MiB")
	flags.DurationVar(&p.length, "duration", 10*time.Second, "of one attack")
	flags.IntVar(&drawn, "draw", 0, "draw so many attacks instead of those that are known")
	flags.StringVar(&only, "only", "", "only attacks whose names have this in them")
	flags.Uint64Var(&seed, "seed", 1, "of the first one that is drawn")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if len(p.servers) != 1 || p.dir == "" || flags.NArg() > 0 {
		return errors.New("hold: want one --server and --dir, and nothing but flags")
	}
	attacks := holdings
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
		above = errors.Join(above, p.holdAt(ctx, limit, attacks))
	}
	return above
}

// holdAt makes each attack on a fresh cluster with a limit, prints what the members took, and returns which were too much.
func (p *limitPlan) holdAt(ctx context.Context, limit string, attacks []holding) (above error) {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "--memory\tattack\tpeak MiB\tafterwards\tothers' puts: p50\tp99\tfailed\trenewals failed\tgroup")
	for i := range attacks {
		if err := p.holdOne(ctx, table, limit, &attacks[i]); err != nil {
			above = errors.Join(above, fmt.Errorf("%s: %w", attacks[i].name, err))
		}
		if err := table.Flush(); err != nil || ctx.Err() != nil {
			return errors.Join(above, err, ctx.Err())
		}
	}
	return above
}

func (p *limitPlan) holdOne(ctx context.Context, table *tabwriter.Writer, limit string, h *holding) (err error) {
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
	confined, release := c.Confine(mib << 20 * 3 / 2)
	defer func() { err = errors.Join(err, c.Remove(), release()) }()
	others, err := newBystander(ctx, c.Members[0].ClientAddr, h.users)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, others.close()) }()
	c.ForgetPeaks()
	end := h.begin(ctx, c.Members[0], others.token)
	others.watch(ctx, p.length)
	peak := c.Resident("VmHWM")
	if err := end(); err != nil {
		return err
	}
	cluster.Pause(ctx, settles)
	const shown = time.Millisecond / 10
	group := "none"
	if confined {
		group = fmt.Sprintf("%d MiB", mib*3/2)
	}
	fmt.Fprintf(table, "%s\t%s\t%.0f\t%.0f\t%s\t%s\t%d of %d\t%d\t%s\n", limit, h.name, peak, c.Resident("VmRSS"),
		others.puts.Quantile(0.5).Round(shown), others.puts.Quantile(0.99).Round(shown), others.failed,
		others.puts.Count()+uint64(others.failed), others.unrenewed, group)
	for _, m := range c.Members {
		select {
		case <-m.Ended:
			return fmt.Errorf("%s ended:\n%s", m.Name, m.LastWords())
		default:
		}
	}
	if peak > float64(mib) {
		return fmt.Errorf("the largest member took %.0f MiB of %d", peak, mib)
	}
	return nil
}

// settles is how long a member gets to give memory back.
const settles = 12 * time.Second
