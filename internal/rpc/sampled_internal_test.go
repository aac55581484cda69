package rpc

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/peer"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/rpc/top"
)

func counting() (*shared, context.Context) {
	s := &shared{options: Options{Clock: env.WallClock{}}, top: top.New(top.MaxCounters, time.Now())}
	from := &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 5}}
	return s, peer.NewContext(context.Background(), from)
}

// Ensure that samples stand for all calls, and that a note keeps nothing of the request, whose memory is used again.
func TestShared_took(t *testing.T) {
	const calls = 64_000
	s, ctx := counting()
	for range calls {
		key := []byte("a/b/c/d")
		n := noteWrite(&kv.Command{Put: &kv.PutOp{Key: key}}, 100)
		copy(key, "xxxxxxx")
		s.took(ctx, n, "u", 0)
	}
	r := s.top.Report(time.Now(), top.Long, top.Operations)
	if n := r.Prefixes.Items[0].Tally[top.Operations]; r.Prefixes.Items[0].Key[1:] != "a/b/c/" || len(r.Prefixes.Items) != 1 ||
		n < calls*9/10 || n > calls*11/10 { // six standard deviations
		t.Errorf("%d calls are counted as %+v", calls, r.Prefixes.Items)
	}
}

// Ensure for which key a transaction counts.
func TestFirstKey(t *testing.T) {
	key := func(s string) []byte { return []byte(s) }
	for _, row := range []struct {
		op   kv.TxnOp
		want string
	}{
		{kv.TxnOp{}, ""},
		{kv.TxnOp{Compares: []kv.Compare{{Key: key("c")}}, Then: []kv.Op{{Put: &kv.PutOp{Key: key("p")}}}}, "c"},
		{kv.TxnOp{Then: []kv.Op{{Delete: &kv.DeleteOp{Key: key("d")}}}, Else: []kv.Op{{Put: &kv.PutOp{Key: key("p")}}}}, "d"},
		{kv.TxnOp{Else: []kv.Op{{Range: &kv.RangeOp{Key: key("r")}}}}, "r"},
		{kv.TxnOp{Then: []kv.Op{{Txn: &kv.TxnOp{Compares: []kv.Compare{{Key: key("n")}}}}}}, "n"},
	} {
		if got := firstKey(&row.op); string(got) != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}

// BenchmarkShared_took is what counting costs a call, the samples and the others together: of keys of one prefix, and of keys that
// are all of another one.
func BenchmarkShared_took(b *testing.B) {
	for _, spray := range []bool{false, true} {
		b.Run(fmt.Sprintf("spray=%t", spray), func(b *testing.B) {
			s, ctx := counting()
			key := []byte("/registry/pods/default/web-1")
			command := &kv.Command{Put: &kv.PutOp{Key: key}}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if spray {
					copy(key[1:], strings.Repeat(string(rune('a'+i%26)), 1)+fmt.Sprint(i))
				}
				s.took(ctx, noteWrite(command, 300), "kube", 30)
			}
		})
	}
}
