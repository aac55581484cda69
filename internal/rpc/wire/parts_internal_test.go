package wire

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/api/v3electionpb"
)

// Ensure that a message of more parts than may be is refused before it is read, nested ones too, and a large one of few is not.
func TestCheckParts(t *testing.T) {
	empty := func(number protowire.Number, n int) []byte {
		return bytes.Repeat(protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), nil), n)
	}
	newcomers, urls := func(n int) []byte { return empty(2, n) }, func(n int) []byte { return empty(1, n) }
	large, err := proto.Marshal(&v3electionpb.CampaignRequest{Value: newcomers(1 << 20)})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		src  []byte
		into proto.Message
		want error
	}{
		{"as many as may be", newcomers(maxParts), new(quoratepb.ChangeSpec), nil},
		{"one more", newcomers(maxParts + 1), new(quoratepb.ChangeSpec), errTooManyParts},
		{"a value that looks like many", large, new(v3electionpb.CampaignRequest), nil},
		{"within another one", protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), newcomers(maxParts+1)),
			new(quoratepb.StartRequest), errTooManyParts},
		{"as many strings as may be", urls(maxParts), new(pb.MemberAddRequest), nil},
		{"keys of a lease in an answer", empty(5, maxParts+1), new(pb.LeaseTimeToLiveResponse), nil},
		{"one string more", urls(maxParts + 1), new(pb.MemberAddRequest), errTooManyParts},
	} {
		if err := CheckParts(row.src, row.into); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
	}
	if err := CheckParts(append(newcomers(maxParts), 0x0a), new(quoratepb.ChangeSpec)); err != nil {
		t.Errorf("a truncated message, which the library refuses: got %v", err)
	}
}
