package member

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/epoch"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/watchdog"
)

// loopOf is the loop of member 1 of three, which has just started, with a node that answers nobody.
func loopOf(t *testing.T, ticks time.Duration, send func([]consensus.Message)) *loop {
	t.Helper()
	config := consensus.Config{Voters: []consensus.MemberID{1, 2, 3}}
	for _, id := range config.Voters {
		config.Members = append(config.Members, consensus.Member{ID: id, PeerURLs: []string{"http://" + id.String()}})
	}
	body, err := node.New(node.Options{Raft: raft.Defaults(1), FirstSession: 1, RetryTicks: 300},
		raft.Restored{Base: consensus.Founding(config)}, node.Ports{
			Send: send, Persist: func(node.Persist) {}, Apply: func([]consensus.Entry) {},
			Configure: func(raft.ConfigInForce) {}, Observe: func([]raft.Event) {},
			Distance: func(consensus.MemberID) (time.Duration, bool) { return 0, false },
		})
	if err != nil {
		t.Fatal(err)
	}
	l := &loop{
		clock: env.WallClock{}, interval: ticks, beat: ticks, most: 10, inbox: &inbox{}, leader: &knownLeader{},
		task: watchdog.New(env.WallClock{}).Watch("loop"), follow: func(*raft.Replica) {}, stopping: t.Context(), node: body,
		epochs: epoch.New(epoch.Options{
			Own: identity.Claim{Cluster: 1, Member: 1}, ElectionTimeout: time.Second, Clock: env.WallClock{},
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		}),
	}
	l.inbox.init(1 << 20)
	l.leader.init(1)
	return l
}

type nobody struct{}

func (nobody) Complete(kv.Result, error) {}

// Ensure that a member that has just met its leader takes the leader's answers by the time at which its first questions and
// proposals leave, and not from the next tick on: it repeats what has no answer after three election timeouts only.
func TestLoop_publish_hearsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		sent := map[consensus.MessageKind]bool{}
		var l *loop
		l = loopOf(t, time.Hour, func(messages []consensus.Message) {
			for _, m := range messages {
				answer := consensus.Message{Kind: consensus.MsgReadReply, From: m.To, To: m.From, Term: m.Term}
				sent[m.Kind] = true
				if len(l.epochs.State().Admit([]consensus.Message{answer})) == 0 {
					t.Errorf("a message of kind %d leaves, and its answer would be dropped", m.Kind)
				}
			}
		})
		if !l.epochs.State().Mute() {
			t.Fatal("a member that has just started has looked for other epochs")
		}
		l.node.Read(func() {})
		if _, err := l.node.Propose(&kv.Command{Put: &kv.PutOp{Key: []byte("k")}}, nobody{}); err != nil {
			t.Fatal(err)
		}
		go func() { _ = l.run(ctx) }()
		l.inbox.putMessages([]consensus.Message{{Kind: consensus.MsgHeartbeat, From: 2, To: 1, Term: 1, Round: 1}})
		synctest.Wait()
		if !sent[consensus.MsgRead] || !sent[consensus.MsgPropose] {
			t.Errorf("kinds that were sent: %v", sent)
		}
		stop()
	})
}
