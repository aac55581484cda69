package node_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/node"
	"github.com/quorate/quorate/internal/member/offers"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// BenchmarkPut takes batches of 64 puts of 256 bytes through all members of a cluster: encoded, proposed, logged, sent,
// committed, applied to Pebble in memory, and answered. Only gRPC, sockets and disks are left out. It says what one put costs
// all members together, how many payloads each member decodes to learn what a command touches, and how many puts the fast
// path decided.
func BenchmarkPut(b *testing.B) {
	for _, row := range []struct {
		name    string
		members int
		at      consensus.MemberID // the proposer; member 1 leads
		fast    bool
	}{
		{"3 members, at the leader", 3, 1, false},
		{"3 members, at a follower", 3, 2, false},
		{"5 members, at a follower, fast", 5, 2, true},
	} {
		b.Run(row.name, func(b *testing.B) {
			setting := offers.Never
			if row.fast {
				setting = offers.Always
			}
			c := newPutCluster(b, row.members, setting)
			defer c.close()
			c.members[0].put(raft.Campaign{})
			c.run()
			p := c.members[row.at-1]
			p.put(raft.Tick{}) // the proposer decides how it proposes
			c.run()
			c.propose(p, 64) // opens the session
			const batch = 64
			footprints, decided := c.footprints, p.node.Replica().FastCounts().Decided
			n, spent := 0, cpuTime(b)
			b.ReportAllocs()
			for b.Loop() {
				c.propose(p, batch)
				n += batch
			}
			if c.answered != n+64 {
				b.Fatalf("%d of %d puts were answered", c.answered, n+64)
			}
			b.ReportMetric(float64((cpuTime(b)-spent).Nanoseconds())/1e3/float64(n), "cpu-us/put")
			b.ReportMetric(float64(c.footprints-footprints)/float64(n*row.members), "footprints/put")
			b.ReportMetric(float64(p.node.Replica().FastCounts().Decided-decided)/float64(n), "fast/put")
		})
	}
}

// cpuTime is the processor time of this process, which a busy machine disturbs less than the time that passes.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// putCluster is members in one goroutine. Their messages are encoded and decoded, as on a connection.
type putCluster struct {
	b          *testing.B
	members    []*putMember
	frame      []byte
	keys       int
	footprints int // how often a member asked what a command touches
	answered   int
}

type putMember struct {
	c       *putCluster
	id      consensus.MemberID
	node    *node.Node
	engine  engine.Engine
	machine *apply.Machine
	inbox   []raft.Input
	log     []byte // scratch, for what goes to disk
	applied consensus.Index
	forgot  consensus.Index
}

func newPutCluster(b *testing.B, members int, setting offers.Setting) *putCluster {
	b.Helper()
	c := &putCluster{b: b}
	var config consensus.Config
	for i := range members {
		id := consensus.MemberID(i + 1)
		config.Voters = append(config.Voters, id)
		config.Members = append(config.Members, consensus.Member{ID: id, PeerURLs: []string{fmt.Sprintf("http://%d", id)}})
	}
	for _, id := range config.Voters {
		c.members = append(c.members, newPutMember(b, c, id, config, setting))
	}
	return c
}

func newPutMember(
	b *testing.B, c *putCluster, id consensus.MemberID, config consensus.Config, setting offers.Setting,
) *putMember {
	b.Helper()
	m := &putMember{c: c, id: id}
	var err error
	if m.engine, err = engine.Open(engine.Options{FS: filestest.NewMem(), Dir: "store"}); err == nil {
		if err = apply.Bootstrap(m.engine, 1, config); err == nil {
			m.machine, err = apply.Open(m.engine, apply.Options{})
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	options := raft.Defaults(id)
	options.Fast = raft.FastOptions{
		Footprint: func(payload []byte) consensus.Footprint {
			c.footprints++
			return kv.PayloadFootprint(payload)
		},
		Revises: kv.Revises,
		State:   func(id consensus.ProposalID) fast.ProposalState { return node.StateOf(m.machine, id) },
	}
	m.node, err = node.New(node.Options{Raft: options, FirstSession: 1, RetryTicks: 300, FastPath: setting},
		raft.Restored{Base: consensus.Founding(config)}, m.ports())
	if err != nil {
		b.Fatal(err)
	}
	return m
}

func (m *putMember) put(input raft.Input) { m.inbox = append(m.inbox, input) }

func (m *putMember) ports() node.Ports {
	return node.Ports{
		Send:         m.c.send,
		Persist:      m.persist,
		Apply:        m.apply,
		Install:      func(consensus.SnapshotMeta) {},
		SendSnapshot: func(consensus.MemberID) {},
		Configure:    func(raft.ConfigInForce) {},
		Observe:      func([]raft.Event) {},
		Distance:     func(consensus.MemberID) (time.Duration, bool) { return time.Millisecond, true },
	}
}

func (c *putCluster) send(messages []consensus.Message) {
	for i := range messages {
		to := c.members[messages[i].To-1]
		if messages[i].From == messages[i].To {
			to.put(raft.Receive{Message: messages[i]})
			continue
		}
		c.frame = consensus.AppendMessage(c.frame[:0], &messages[i])
		received, _, err := consensus.DecodeMessage(append([]byte(nil), c.frame...))
		if err != nil {
			c.b.Fatal(err)
		}
		to.put(raft.Receive{Message: received})
	}
}

func (m *putMember) persist(request node.Persist) {
	m.log = m.log[:0]
	for i := range request.Batch.Entries {
		m.log = consensus.AppendEntry(m.log, &request.Batch.Entries[i])
	}
	m.c.send(request.After)
	for i := range request.Evaluate {
		if answer, known := node.Answer(&request.Evaluate[i], m.machine); known {
			m.c.send([]consensus.Message{answer})
		}
	}
	if request.Seq != 0 {
		m.put(raft.Persisted{Seq: request.Seq})
	}
}

func (m *putMember) apply(entries []consensus.Entry) {
	results, err := m.machine.ApplyFor(entries, nil)
	if err != nil {
		m.c.b.Fatal(err)
	}
	m.node.Resolve(entries, results)
	m.applied = entries[len(entries)-1].Index
	m.put(raft.Applied{Index: m.applied, Revision: uint64(m.machine.Store().Revision())})
	if m.applied > m.forgot+10_000 {
		m.forgot = m.applied - 5000
		m.put(raft.Compact{Index: m.forgot})
	}
}

// run steps every member until nothing is left to do.
func (c *putCluster) run() {
	for moved := true; moved; {
		moved = false
		for _, m := range c.members {
			if len(m.inbox) == 0 && !m.node.Waiting() {
				continue
			}
			moved = true
			inputs := m.inbox
			m.inbox = nil
			m.node.Step(time.Time{}, inputs...)
		}
	}
}

// propose puts so many keys through a member and waits for the answers.
func (c *putCluster) propose(m *putMember, n int) {
	for range n {
		c.keys++
		key := fmt.Appendf(nil, "key-%012d", c.keys*7919%10_000)
		command := &kv.Command{Put: &kv.PutOp{Key: key, Value: make([]byte, 256)}}
		if _, err := m.node.Propose(command, c); err != nil {
			c.b.Fatal(err)
		}
	}
	c.run()
}

// Complete implements proposals.Completion.
func (c *putCluster) Complete(result kv.Result, err error) {
	if err == nil && result.Err == nil {
		c.answered++
	}
}

func (c *putCluster) close() {
	for _, m := range c.members {
		_ = m.engine.Close()
	}
}
