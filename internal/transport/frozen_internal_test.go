package transport

import (
	"bytes"
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/test/golden/frozen"
)

var rewrite = flag.Bool("rewrite", false, "append frames of new kinds to the table")

// frozenHello has another value in each field.
func frozenHello() hello {
	return hello{version: protocolVersion, kind: streamExpress, to: 0x0203, can: canUnpack, token: token{1, 2, 3},
		claim: identity.Claim{Cluster: 0x1112131415161718, Member: 0x0102030405060708, Address: "http://a:1",
			Storage: consensus.StorageID{1, 2, 3, 4}, Epoch: consensus.Epoch{Number: 5, Recovery: [16]byte{6, 7}},
			Life: consensus.Life{Boots: 8, Nonce: 9}}}
}

// Ensure that no frame between members has other bytes than in 1.0. Packed frames are zstd's, which may pack otherwise one day:
// of them the table has one that must unpack to what it was.
func TestFrozen(t *testing.T) {
	h := frozenHello()
	message := consensus.Message{Kind: consensus.MsgHeartbeat, From: 1, To: 2, Term: 7, Commit: 300}
	messages, _ := appendMessages(nil, []consensus.Message{message, message})
	values := []frozen.Value{
		{Name: "frame: hello of a stream", Bytes: h.frame()},
		{Name: "frame: messages", Bytes: messages},
		{Name: "frame: ping", Bytes: tickFrame(framePing, 300)},
		{Name: "frame: pong", Bytes: tickFrame(framePong, 300)},
		{Name: "frame: answer", Bytes: answerFrame([]byte("answer")).plain},
		{Name: "answer to a challenge", Bytes: h.token.answer([]byte("challenge of a member"))},
	}
	values = append(values, frozenCall(t, h)...)
	values = append(values, frozenSnapshot(t)...)
	values = append(values,
		frozen.Value{Name: "method: stream of messages", Bytes: []byte(messagesMethod)},
		frozen.Value{Name: "method: stream of a snapshot", Bytes: []byte(snapshotMethod)},
		frozen.Value{Name: "method: call", Bytes: []byte(callMethod)},
		frozen.Value{Name: "method in a call: which member is there", Bytes: []byte(methodFind)},
		frozen.Value{Name: "method in a call: a challenge", Bytes: []byte(methodConfirm)},
		frozen.Value{Name: "name of the header with the token", Bytes: []byte(tokenHeader)})
	frozen.Check(t, "testdata/frames.txt", *rewrite, values)
}

// frozenPacked are two frames that followed each other on one packed stream: what they have in common is in the first one.
var frozenPacked = [...]string{
	"0bc41380d0022b28b52ffd0030bc0000780207020100000000000000020007ac020038d5d05092",
	"0b8b7bf1b6022b4c000008ad021004a848d240",
}

// Ensure that packed frames of 1.0 unpack to what they were.
func TestFrozen_packed(t *testing.T) {
	budget := &packBudget{}
	budget.open(unpackerBytes)
	u := newUnpacker(&Packing{When: PackAlways}, budget, false)
	defer u.close()
	for i, packed := range frozenPacked {
		frame, err := hex.DecodeString(packed)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := u.plain(frame)
		if err != nil {
			t.Fatal(err)
		}
		message := consensus.Message{Kind: consensus.MsgHeartbeat, From: 1, To: 2, Term: 7, Commit: consensus.Index(300 + i)}
		if want, _ := appendMessages(nil, []consensus.Message{message, message}); !bytes.Equal(plain, want) {
			t.Errorf("frame %d unpacks to %x, want %x: %s", i, plain, want, frozen.Advice)
		}
	}
}

// frozenCall is what a call sends, caught before it reaches a connection.
func frozenCall(t *testing.T, h hello) (values []frozen.Value) {
	t.Helper()
	caught := func(ctx context.Context, method string, sent, answer any, _ *grpc.ClientConn, _ grpc.UnaryInvoker,
		_ ...grpc.CallOption) error {
		header, _ := metadata.FromOutgoingContext(ctx)
		values = append(values, frozen.Value{Name: "frame: call", Bytes: sent.(*outFrame).plain},
			frozen.Value{Name: "header of a call", Bytes: []byte(header.Get(tokenHeader)[0])})
		answer.(*inFrame).bytes = answerFrame([]byte("answer")).plain
		return nil
	}
	conn, err := grpc.NewClient("passthrough:///nowhere", grpc.WithUnaryInterceptor(caught),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := call(t.Context(), conn, h, "membership.view", []byte("body"), 100)
	if err != nil || string(answer) != "answer" {
		t.Fatalf("answer %q, %v", answer, err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	return values
}

// frozenStream catches what is sent on the stream of a snapshot, and answers that all of it is installed.
type frozenStream struct {
	grpc.ClientStream
	sent [][]byte
}

func (s *frozenStream) SendMsg(m any) error {
	frame := m.(*outFrame)
	if frame.pooled != nil {
		frame.plain = *frame.pooled
	}
	s.sent = append(s.sent, slices.Clone(frame.plain))
	return nil
}

func (s *frozenStream) CloseSend() error { return nil }

func (s *frozenStream) RecvMsg(m any) error {
	m.(*inFrame).bytes = beginFrame(nil, frameInstalled)
	sealFrame(m.(*inFrame).bytes)
	return nil
}

// frozenSnapshot are the frames of a snapshot, after its hello.
func frozenSnapshot(t *testing.T) (values []frozen.Value) {
	t.Helper()
	s := &frozenStream{}
	w := &snapshotWriter{t: &Transport{}, ctx: t.Context(), to: 2, stream: s, transfer: &transfer{}}
	meta := consensus.SnapshotMeta{Position: consensus.Position{Index: 300, Term: 7}}
	if err := w.plain(consensus.AppendSnapshotMeta(beginFrame(nil, frameHead), &meta)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(w, "a snapshot"); err != nil {
		t.Fatal(err)
	}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"head", "chunk", "end"} {
		values = append(values, frozen.Value{Name: "frame: " + name + " of a snapshot", Bytes: s.sent[i]})
	}
	var installed inFrame
	if err := s.RecvMsg(&installed); err != nil {
		t.Fatal(err)
	}
	return append(values, frozen.Value{Name: "frame: snapshot installed", Bytes: installed.bytes})
}
