package writerapi

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/broadcast"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/clients"
)

// changing is a member that learns of one leader after the other.
type changing struct {
	fullMember
	leader  atomic.Uint64
	changes broadcast.Signal
}

func (m *changing) ClusterState() clients.ClusterState {
	return clients.ClusterState{Leader: consensus.MemberID(m.leader.Load())}
}

func (m *changing) ClusterStateChanged() <-chan struct{} { return m.changes.Next() }

// slowNetwork sends one message whenever the test takes it.
type slowNetwork struct {
	grpc.BidiStreamingServer[quoratepb.ProposeRequest, quoratepb.ProposeResponse]
	ctx  context.Context
	sent chan *quoratepb.ProposeResponse
}

func (n slowNetwork) Context() context.Context { return n.ctx }

func (n slowNetwork) Send(r *quoratepb.ProposeResponse) error {
	select {
	case n.sent <- r:
		return nil
	case <-n.ctx.Done():
		return n.ctx.Err()
	}
}

// Ensure that a client is told of a new leader that the member learned of while it sent something else.
func TestStream_send_changesMeanwhile(t *testing.T) {
	m := &changing{fullMember: fullMember{machine: openMachine(t)}}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		network := slowNetwork{ctx: ctx, sent: make(chan *quoratepb.ProposeResponse)}
		p, _ := openStream(t, m, m, m, network)
		over := make(chan error, 1)
		go func() { over <- p.send() }()
		synctest.Wait() // the first status is being sent
		m.leader.Store(3)
		m.changes.Send()
		if first := <-network.sent; first.Status == nil || first.Status.Leader != 0 {
			t.Errorf("the first message is %v", first)
		}
		synctest.Wait()
		select {
		case next := <-network.sent:
			if next.Status == nil || next.Status.Leader != 3 {
				t.Errorf("the next message is %v", next)
			}
		default:
			t.Error("the client is not told of the new leader")
		}
		cancel()
		<-over
		p.stream.Close()
	})
}
