package key_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

// fakeMember serves the service Encryption with answers of a test.
type fakeMember struct {
	quoratepb.UnimplementedEncryptionServer
	status  *quoratepb.EncryptionStatus
	refusal error
	rotated int
}

func (f *fakeMember) Status(context.Context, *quoratepb.EncryptionStatusRequest) (*quoratepb.EncryptionStatus, error) {
	return f.status, f.refusal
}

func (f *fakeMember) Rotate(context.Context, *quoratepb.RotateKeyRequest) (*quoratepb.EncryptionStatus, error) {
	f.rotated++
	return f.status, f.refusal
}

func (f *fakeMember) serve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	quoratepb.RegisterEncryptionServer(server, f)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

// Ensure that keys are shown with what they have, that names which a plug-in chose lose what a terminal obeys, that one member is
// asked, and that a refusal is told.
func TestKey(t *testing.T) {
	f := &fakeMember{status: &quoratepb.EncryptionStatus{Member: 0xa1, Provider: "kms", WrappedBy: "key\x1b[31m", PlainBytes: 2048,
		Keys: []*quoratepb.DataKey{
			{Id: "0a", CreatedSeconds: 1796000000, Files: 3, Bytes: 3 << 20}, {Id: "0b", CreatedSeconds: 1796000060, Active: true},
		}}}
	address := f.serve(t)
	const want = `member a1: its keys are wrapped by kms, key key[31m
KEY  CREATED               FILES  BYTES
0a   2026-11-30T00:53:20Z  3      3.0 MiB  
0b   2026-11-30T00:54:20Z  0      0 B      new files
2.0 KiB are not encrypted: they were put there from elsewhere
`
	for _, verb := range []string{"status", "rotate"} {
		if got := ctltest.RunAt(t, address, "key", verb); got.Status != command.StatusOK || trim(got.Out) != trim(want) {
			t.Errorf("%s: %+v", verb, got)
		}
		two := ctltest.RunAt(t, address+","+address, "key", verb)
		if two.Status != command.StatusUsage || !strings.Contains(two.Err, "names 2 members") {
			t.Errorf("%s of two members: %+v", verb, two)
		}
	}
	if f.rotated != 1 {
		t.Errorf("rotated %d times", f.rotated)
	}
	if got := ctltest.RunAt(t, address, "key", "status", "-o", "json"); !strings.Contains(got.Out, `"3145728"`) &&
		!strings.Contains(got.Out, "3145728") {
		t.Errorf("as JSON: %+v", got)
	}
	f.refusal = status.Error(codes.FailedPrecondition, "the data directory of this member is not encrypted")
	if got := ctltest.RunAt(t, address, "key", "rotate"); got.Status == command.StatusOK || !strings.Contains(got.Err, "is not encrypted") {
		t.Errorf("a refusal: %+v", got)
	}
}

// trim removes blanks at the ends of lines.
func trim(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
