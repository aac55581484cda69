package writerapi

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/clients/streams"
	"github.com/quorate/quorate/internal/nativeclient"
)

// proposeStream drives the stream of one client. The goroutine of the call sends, and one more receives.
type proposeStream struct {
	writer *Service
	grpc   grpc.BidiStreamingServer[quoratepb.ProposeRequest, quoratepb.ProposeResponse]
	stream *streams.Stream
	ready  chan struct{} // there may be something to send
	room   chan struct{} // there may be room for what was received
}

func newStream(
	w *Service, grpc grpc.BidiStreamingServer[quoratepb.ProposeRequest, quoratepb.ProposeResponse],
) *proposeStream {
	return &proposeStream{writer: w, grpc: grpc, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// Ready implements streams.Driver.
func (p *proposeStream) Ready() { signal(p.ready) }

// Room implements streams.Driver.
func (p *proposeStream) Room() { signal(p.room) }

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// Open implements streams.Driver.
func (p *proposeStream) Open(above uint64, keep []uint64) {
	client := p.stream.Owner().ID
	go func() {
		p.stream.Opened(p.writer.options.Clients.OpenClientSession(p.grpc.Context(), client, above, keep,
			p.writer.streams.NeighboursOf(client)))
	}()
}

// receive takes what the client sends. It ends with the stream: when the call returns, Recv fails.
func (p *proposeStream) receive(request *quoratepb.ProposeRequest) {
	for p.take(request) {
		var err error
		if request, err = p.grpc.Recv(); err != nil {
			p.stream.End(err)
			return
		}
	}
}

// take does what one message asks for. It returns false if the stream has ended.
func (p *proposeStream) take(request *quoratepb.ProposeRequest) bool {
	ctx := p.grpc.Context()
	p.stream.Take(request)
	for {
		switch p.stream.Go(ctx) {
		case streams.Done:
			return true
		case streams.Room:
			<-p.room
		case streams.Turn:
			p.stream.Turned(p.turn(p.stream.Turning()))
		case streams.Offer:
			p.writer.options.Clients.Offer(ctx, p.stream.Owner().ID, p.stream.Offering())
		default:
			return false
		}
	}
}

// turn waits until a command may be proposed. Meanwhile nothing is read of the client, which counts as heard: that is not its
// fault. The client hears of the member, which does not answer its pings, and so does not take the stream for dead.
func (p *proposeStream) turn(command *kv.Command) (leave func(), err error) {
	ctx := p.grpc.Context()
	stop := func() {}
	defer func() { stop() }()
	return p.writer.options.KV.Turn(ctx, command, func() {
		p.writer.options.Clients.Offer(ctx, p.stream.Owner().ID, p.stream.Yield())
		waiting, cancel := context.WithCancel(ctx)
		stop = cancel
		go p.keep(waiting)
	})
}

// keep counts the client as heard, and lets it hear of the member, until ctx ends.
func (p *proposeStream) keep(ctx context.Context) {
	ticker := time.NewTicker(nativeclient.PingInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		p.writer.options.Clients.KeepClient(p.stream.Owner().ID)
		p.stream.Remind()
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// send delivers what there is to say, until the stream ends.
func (p *proposeStream) send() error {
	ctx := p.grpc.Context()
	for {
		changed := p.writer.options.Clients.ClusterStateChanged()
		response, ended, err := p.stream.Next(ctx, time.Now())
		if response != nil {
			if err := p.grpc.Send(response); err != nil {
				return err
			}
			continue
		}
		if ended {
			return err
		}
		select {
		case <-p.ready:
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
