package member

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/epoch"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/node"
)

// lonelyHost is a member without a transport.
type lonelyHost struct {
	host
	deliver func([]consensus.Message)
}

func (h lonelyHost) Deliver(messages []consensus.Message) { h.deliver(messages) }

func (h lonelyHost) Configured(raft.ConfigInForce) {}

func (h lonelyHost) Observed(raft.Event) {}

func (h lonelyHost) Distance(consensus.MemberID) (time.Duration, bool) { return 0, false }

// startLonely makes the node of member 1 of three.
func startLonely(t *testing.T, deliver func([]consensus.Message)) *Member {
	t.Helper()
	config := consensus.Config{Voters: []consensus.MemberID{1, 2, 3}}
	for _, id := range config.Voters {
		config.Members = append(config.Members, consensus.Member{ID: id, PeerURLs: []string{"http://" + id.String()}})
	}
	m := memberOf(t, config)
	m.options.TickInterval = time.Hour
	m.epochs = epoch.New(epoch.Options{
		Own: identity.Claim{Cluster: 1, Member: 1}, ElectionTimeout: time.Second, Clock: env.WallClock{},
		Logger: slog.New(slog.DiscardHandler),
	})
	m.lanes = lanes.New(lanes.Options{
		Data: m.data, Stores: &m.stores, Clock: env.WallClock{}, TickInterval: time.Hour, MostTicks: 10, InboxBytes: 1 << 20,
		RequestTimeout: time.Hour,
	}, lonelyHost{host{m}, deliver})
	err := m.lanes.Start(node.Options{Raft: raft.Defaults(1), FirstSession: 1, RetryTicks: 300},
		raft.Restored{Base: consensus.Founding(config)}, lanes.Parts{})
	if err != nil {
		t.Fatal(err)
	}
	m.lanes.Open()
	return m
}

type nobody struct{}

func (nobody) Complete(kv.Result, error) {}

// Ensure that a member that has just learned its leader accepts that leader's answers from the time at which its first
// questions and proposals leave, and not only from the next tick on: it repeats a request without an answer only after three
// election timeouts.
func TestHost_Stepped_hearsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		sent := map[consensus.MessageKind]bool{}
		var m *Member
		m = startLonely(t, func(messages []consensus.Message) {
			for _, sending := range messages {
				answer := consensus.Message{Kind: consensus.MsgReadReply, From: sending.To, To: sending.From, Term: sending.Term}
				sent[sending.Kind] = true
				if len(m.epochs.State().Admit([]consensus.Message{answer})) == 0 {
					t.Errorf("a message of kind %d leaves, and its answer would be dropped", sending.Kind)
				}
			}
		})
		if !m.epochs.State().Mute() {
			t.Fatal("a member that has just started has looked for other epochs")
		}
		m.lanes.Node().Read(func() {})
		if _, err := m.lanes.Node().Propose(&kv.Command{Put: &kv.PutOp{Key: []byte("k")}}, nobody{}); err != nil {
			t.Fatal(err)
		}
		go func() { _ = m.runLoop(ctx) }()
		m.lanes.Inbox().PutMessages([]consensus.Message{{Kind: consensus.MsgHeartbeat, From: 2, To: 1, Term: 1, Round: 1}})
		synctest.Wait()
		if !sent[consensus.MsgRead] || !sent[consensus.MsgPropose] {
			t.Errorf("kinds that were sent: %v", sent)
		}
		stop()
	})
}
