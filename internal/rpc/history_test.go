package rpc_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/limits/answers"
	"github.com/quorate/quorate/internal/rpc"
)

func historyOf(t *testing.T, c *clientv3.Client) quoratepb.HistoryClient {
	t.Helper()
	return quoratepb.NewHistoryClient(c.ActiveConnection())
}

// must ends a test unless a call succeeded.
func must[R any](t *testing.T) func(answer R, err error) R {
	return func(answer R, err error) R {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
}

// pagesOf returns the keys of all pages of a request, as the answers have them.
func pagesOf(t *testing.T, api quoratepb.HistoryClient, r *quoratepb.DeletedRequest) (all []*quoratepb.DeletedKey) {
	t.Helper()
	for {
		page := must[*quoratepb.DeletedAnswer](t)(api.Deleted(waitContext(t), r))
		all = append(all, page.Keys...)
		if r.Page = page.NextPage; len(r.Page) == 0 {
			return all
		}
	}
}

// linesOf writes what answers say of keys.
func linesOf(keys []*quoratepb.DeletedKey) (text string) {
	for _, k := range keys {
		text += fmt.Sprintf("%s deleted %d, at %d: %d/%d v%d, %d bytes, lease %d", k.Key, k.DeletedRevision, k.ReadRevision,
			k.Was.GetModRevision(), k.Was.GetCreateRevision(), k.Was.GetVersion(), k.Was.GetSize(), k.Was.GetLease())
		if k.Now != nil {
			text += fmt.Sprintf("; now %d, same %v", k.Now.ModRevision, k.Same)
		}
		text += "\n"
	}
	return text
}

// Ensure that versions of a key come newest first, deletions among them, in pages, and as far as the history is kept.
func TestHistory_Versions(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	c, ctx := s.client(t), waitContext(t)
	lease := must[*clientv3.LeaseGrantResponse](t)(c.Grant(ctx, 600))
	must[*clientv3.PutResponse](t)(c.Put(ctx, "k", "one"))                                 // 2
	must[*clientv3.PutResponse](t)(c.Put(ctx, "k", "three", clientv3.WithLease(lease.ID))) // 3
	must[*clientv3.DeleteResponse](t)(c.Delete(ctx, "k"))                                  // 4
	must[*clientv3.PutResponse](t)(c.Put(ctx, "other", ""))                                // 5
	must[*clientv3.PutResponse](t)(c.Put(ctx, "k", ""))                                    // 6
	text := func(r *quoratepb.VersionsRequest) (text string) {
		r.Key = []byte("k")
		for {
			page := must[*quoratepb.VersionsAnswer](t)(historyOf(t, c).Versions(ctx, r))
			for _, v := range page.Versions {
				text += fmt.Sprintf("%d/%d v%d %d %q %v %v; ", v.ModRevision, v.CreateRevision, v.Version, v.Size, v.Value,
					v.Lease == int64(lease.ID), v.Deleted)
			}
			if page.MemberId != uint64(testMember) || page.ClusterId != uint64(testCluster) || page.Revision != 6 {
				t.Errorf("it is of %x of %x at %d", page.MemberId, page.ClusterId, page.Revision)
			}
			if r.BeforeRevision = page.NextBefore; r.BeforeRevision == 0 {
				return fmt.Sprintf("%ssince %d", text, page.FirstRevision)
			}
		}
	}
	const newest, older = `6/6 v1 0 "" false false; `, `4/0 v0 0 "" false true; 3/2 v2 5 "three" true false; `
	const oldest = `2/2 v1 3 "one" false false; `
	bare := strings.ReplaceAll(strings.ReplaceAll(newest+older+oldest, `"three"`, `""`), `"one"`, `""`)
	for _, row := range []struct {
		r    *quoratepb.VersionsRequest
		want string
	}{
		{&quoratepb.VersionsRequest{}, newest + older + oldest + "since 1"},
		{&quoratepb.VersionsRequest{Limit: 1}, newest + older + oldest + "since 1"},
		{&quoratepb.VersionsRequest{Limit: 1 << 60, KeysOnly: true, Linearizable: true}, bare + "since 1"},
		{&quoratepb.VersionsRequest{BeforeRevision: 6}, older + oldest + "since 1"},
		{&quoratepb.VersionsRequest{BeforeRevision: 2}, "since 1"},
	} {
		if got := text(row.r); got != row.want {
			t.Errorf("%v: got %s, want %s", row.r, got, row.want)
		}
	}
	must[*clientv3.CompactResponse](t)(c.Compact(ctx, 3))
	if got, want := text(&quoratepb.VersionsRequest{}), newest+older+"since 3"; got != want {
		t.Errorf("compacted: got %s, want %s", got, want)
	}
}

// Ensure that keys that are gone are found with what they were, and those that are there again only if they are asked for.
func TestHistory_Deleted(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	c, ctx := s.client(t), waitContext(t)
	for _, key := range []string{"a/1", "a/2", "a/3", "b"} { // 2 to 5
		must[*clientv3.PutResponse](t)(c.Put(ctx, key, "value of "+key))
	}
	must[*clientv3.PutResponse](t)(c.Put(ctx, "a/2", "again"))                    // 6
	must[*clientv3.DeleteResponse](t)(c.Delete(ctx, "a/", clientv3.WithPrefix())) // 7
	must[*clientv3.PutResponse](t)(c.Put(ctx, "a/3", "value of a/3"))             // 8
	must[*clientv3.PutResponse](t)(c.Put(ctx, "b", "changed"))                    // 9
	const one, two = "a/1 deleted 7, at 6: 2/2 v1, 12 bytes, lease 0\n", "a/2 deleted 7, at 6: 6/3 v2, 5 bytes, lease 0\n"
	const three = "a/3 deleted 7, at 6: 4/4 v1, 12 bytes, lease 0; now 8, same true\n"
	const at5 = "a/1 deleted 7, at 5: 2/2 v1, 12 bytes, lease 0\na/2 deleted 7, at 5: 3/3 v1, 12 bytes, lease 0\n"
	for _, row := range []struct {
		r    *quoratepb.DeletedRequest
		want string
	}{
		{&quoratepb.DeletedRequest{}, one + two},
		{&quoratepb.DeletedRequest{Limit: 1}, one + two},
		{&quoratepb.DeletedRequest{Limit: 1, Existing: true}, one + two + three},
		{&quoratepb.DeletedRequest{AtRevision: 5, Limit: 1}, at5},
		{&quoratepb.DeletedRequest{AtRevision: 5, Limit: 1, Existing: true}, at5 + "a/3 deleted 0, at 5: 4/4 v1, 12 bytes, lease 0; " +
			"now 8, same true\nb deleted 0, at 5: 5/5 v1, 10 bytes, lease 0; now 9, same false\n"},
		{&quoratepb.DeletedRequest{AtRevision: 9, Existing: true}, ""},
		{&quoratepb.DeletedRequest{Key: []byte("a/2")}, two},
		{&quoratepb.DeletedRequest{Key: []byte("b")}, ""},
		{&quoratepb.DeletedRequest{Key: []byte("b"), RangeEnd: []byte("a")}, ""},
		{&quoratepb.DeletedRequest{Key: []byte("a/2"), RangeEnd: []byte("a/3"), Linearizable: true}, two},
	} {
		if r := row.r; len(r.Key) == 0 {
			r.Key, r.RangeEnd = []byte{0}, []byte{0}
		}
		if got := linesOf(pagesOf(t, historyOf(t, c), row.r)); got != row.want {
			t.Errorf("%v: got\n%swant\n%s", row.r, got, row.want)
		}
	}
}

// Ensure that requests that make no sense are refused, that a page goes on only the request that it is of, and that none leads out of
// its range.
func TestHistory_hostile(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	c, ctx := s.client(t), waitContext(t)
	for _, key := range []string{"a", "b", "c", "z"} {
		must[*clientv3.PutResponse](t)(c.Put(ctx, key, "v"))
	}
	must[*clientv3.DeleteResponse](t)(c.Delete(ctx, "a", clientv3.WithFromKey()))
	api := historyOf(t, c)
	ask := func() *quoratepb.DeletedRequest {
		return &quoratepb.DeletedRequest{Key: []byte("a"), RangeEnd: []byte("d"), Limit: 1}
	}
	page := must[*quoratepb.DeletedAnswer](t)(api.Deleted(ctx, ask())).NextPage
	if len(page) == 0 {
		t.Fatal("there is no second page")
	}
	forged := append(bytes.Clone(page[:len(page)-1]), 'z')
	for name, row := range map[string]struct {
		change func(*quoratepb.DeletedRequest)
		want   codes.Code
	}{
		"no key":                   {func(r *quoratepb.DeletedRequest) { r.Key = nil }, codes.InvalidArgument},
		"a negative limit":         {func(r *quoratepb.DeletedRequest) { r.Limit = -1 }, codes.InvalidArgument},
		"a negative revision":      {func(r *quoratepb.DeletedRequest) { r.AtRevision = -1 }, codes.InvalidArgument},
		"a revision of the future": {func(r *quoratepb.DeletedRequest) { r.AtRevision = 1 << 60 }, codes.OutOfRange},
		"a large limit":            {func(r *quoratepb.DeletedRequest) { r.Limit = 1 << 62 }, codes.OK},
		"the page":                 {func(r *quoratepb.DeletedRequest) { r.Page = page }, codes.OK},
		"another limit":            {func(r *quoratepb.DeletedRequest) { r.Page, r.Limit = page, 2 }, codes.OK},
		"of another range":         {func(r *quoratepb.DeletedRequest) { r.Page, r.RangeEnd = page, []byte("e") }, codes.InvalidArgument},
		"of another key":           {func(r *quoratepb.DeletedRequest) { r.Page, r.Key = page, []byte("aa") }, codes.InvalidArgument},
		"of another revision":      {func(r *quoratepb.DeletedRequest) { r.Page, r.AtRevision = page, 5 }, codes.InvalidArgument},
		"of existing keys":         {func(r *quoratepb.DeletedRequest) { r.Page, r.Existing = page, true }, codes.InvalidArgument},
		"garbage":                  {func(r *quoratepb.DeletedRequest) { r.Page = []byte("garbage") }, codes.InvalidArgument},
		"a head alone":             {func(r *quoratepb.DeletedRequest) { r.Page = page[:9] }, codes.InvalidArgument},
		"another form":             {func(r *quoratepb.DeletedRequest) { r.Page = append([]byte{2}, page[1:]...) }, codes.InvalidArgument},
		"beyond the range":         {func(r *quoratepb.DeletedRequest) { r.Page = forged }, codes.InvalidArgument},
	} {
		r := ask()
		row.change(r)
		if _, err := api.Deleted(ctx, r); status.Code(err) != row.want {
			t.Errorf("%s: got %v, want %v", name, err, row.want)
		}
	}
	for name, r := range map[string]*quoratepb.VersionsRequest{
		"no key": {}, "a negative limit": {Key: []byte("a"), Limit: -1}, "a negative revision": {Key: []byte("a"), BeforeRevision: -1},
	} {
		if _, err := api.Versions(ctx, r); status.Code(err) != codes.InvalidArgument {
			t.Errorf("versions, %s: got %v", name, err)
		}
	}
	must[*clientv3.CompactResponse](t)(c.Compact(ctx, 5))
	r := ask()
	r.AtRevision = 4
	if _, err := api.Deleted(ctx, r); rpctypes.ErrorDesc(err) != rpctypes.ErrorDesc(rpctypes.ErrGRPCCompacted) {
		t.Errorf("a compacted revision: got %v", err)
	}
}

// Ensure that a caller needs the permission that a Range of the same keys needs, and is refused by the same error.
func TestHistory_permissions(t *testing.T) {
	s, root, alice, nobody := secured(t)
	ctx := waitContext(t)
	for _, key := range []string{"a1", "b1", "s1"} {
		must[*clientv3.DeleteResponse](t)(root.Delete(ctx, key))
	}
	clients := map[string]*clientv3.Client{"root": root, "alice": alice, "nobody": nobody}
	allowed := 0
	for name, c := range clients {
		for _, r := range [][2]string{{"a1", ""}, {"b1", ""}, {"s1", ""}, {"a", "c"}, {"b", "c"}, {"a", "t"}, {"\x00", "\x00"}, {"s", "t"}} {
			key, end := []byte(r[0]), []byte(r[1])
			_, want := pb.NewKVClient(c.ActiveConnection()).Range(ctx, &pb.RangeRequest{Key: key, RangeEnd: end})
			answer, got := historyOf(t, c).Deleted(ctx, &quoratepb.DeletedRequest{Key: key, RangeEnd: end})
			if status.Code(got) != status.Code(want) || rpctypes.ErrorDesc(got) != rpctypes.ErrorDesc(want) {
				t.Errorf("%s, %q to %q: got %v, a range %v", name, key, end, got, want)
			}
			if want == nil {
				allowed++
			} else if answer != nil {
				t.Errorf("%s, %q to %q: refused with %v", name, key, end, answer)
			}
			if len(end) > 0 {
				continue
			}
			if _, got = historyOf(t, c).Versions(ctx, &quoratepb.VersionsRequest{Key: key}); status.Code(got) != status.Code(want) {
				t.Errorf("%s, versions of %q: got %v, a range %v", name, key, got, want)
			}
		}
	}
	if allowed != 8+4 {
		t.Errorf("%d ranges may be read", allowed)
	}
	found := pagesOf(t, historyOf(t, s.as(t, "alice")), &quoratepb.DeletedRequest{Key: []byte("a"), RangeEnd: []byte("c")})
	if len(found) != 1 || string(found[0].Key) != "b1" {
		t.Errorf("alice finds %v", found)
	}
}

// Ensure that a member answers without a leader, and as a learner, unless it is asked for what is acknowledged elsewhere.
func TestHistory_noLeader(t *testing.T) {
	b := newMachineBackend(t)
	s := serve(t, b, nil)
	c, ctx := s.client(t), waitContext(t)
	must[*clientv3.PutResponse](t)(c.Put(ctx, "k", "v"))
	must[*clientv3.DeleteResponse](t)(c.Delete(ctx, "k"))
	b.lead(consensus.NoMember)
	b.learner = true
	r := &quoratepb.DeletedRequest{Key: []byte("k")}
	if answer, err := historyOf(t, c).Deleted(ctx, r); err != nil || len(answer.Keys) != 1 {
		t.Errorf("got %v, %v", answer, err)
	}
	if answer, err := historyOf(t, c).Versions(ctx, &quoratepb.VersionsRequest{Key: []byte("k")}); err != nil || len(answer.Versions) != 2 {
		t.Errorf("got %v, %v", answer, err)
	}
	r.Linearizable = true
	b.learner = false
	_, want := pb.NewKVClient(c.ActiveConnection()).Range(ctx, &pb.RangeRequest{Key: r.Key, RangeEnd: []byte("l")})
	if _, err := historyOf(t, c).Deleted(ctx, r); want == nil || rpctypes.ErrorDesc(err) != rpctypes.ErrorDesc(want) {
		t.Errorf("linearizable: got %v, a range %v", err, want)
	}
}

// Ensure that answers are bounded in bytes, in keys and in what is looked at, and that their memory is counted until they are sent.
func TestHistory_bounds(t *testing.T) {
	budget := answers.New(24<<20, 0)
	s := serve(t, newMachineBackend(t), func(o *rpc.Options) { o.Answers = budget })
	c, ctx := s.client(t), waitContext(t)
	for i := range 6 {
		must[*clientv3.PutResponse](t)(c.Put(ctx, "large", strings.Repeat("v", 700_000+i)))
	}
	ask := &quoratepb.VersionsRequest{Key: []byte("large")}
	page := must[*quoratepb.VersionsAnswer](t)(historyOf(t, c).Versions(ctx, ask))
	if len(page.Versions) != 1 || page.NextBefore != page.Versions[0].ModRevision || page.Versions[0].Size != 700_005 {
		t.Errorf("%d versions of 700 kB, and then before %d", len(page.Versions), page.NextBefore)
	}
	ask.KeysOnly = true
	page = must[*quoratepb.VersionsAnswer](t)(historyOf(t, c).Versions(ctx, ask))
	if len(page.Versions) != 5 || page.NextBefore == 0 || len(page.Versions[0].Value) > 0 {
		t.Errorf("%d versions without values, and then before %d", len(page.Versions), page.NextBefore)
	}
	const keys = 2500
	for i := range keys {
		must[*clientv3.PutResponse](t)(c.Put(ctx, fmt.Sprintf("k/%04d", i), ""))
	}
	must[*clientv3.DeleteResponse](t)(c.Delete(ctx, "k/", clientv3.WithPrefix()))
	many := &quoratepb.DeletedRequest{Key: []byte("k"), RangeEnd: []byte("l"), Limit: 1 << 40}
	answer := must[*quoratepb.DeletedAnswer](t)(historyOf(t, c).Deleted(ctx, many))
	if len(answer.Keys) != 1000 || len(answer.NextPage) == 0 {
		t.Errorf("%d keys in a page", len(answer.Keys))
	}
	if all := pagesOf(t, historyOf(t, c), many); len(all) != keys {
		t.Errorf("%d keys in all", len(all))
	}
	for budget.UsedBytes() != 0 { // the last buffer is freed once it is sent
		<-time.After(time.Millisecond)
	}
	busy := budget.Open(0)
	if err := busy.Take(12 << 20); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := historyOf(t, c).Deleted(short, many); err == nil {
		t.Error("an answer for which there is no memory")
	}
	busy.Release()
	s.awaitMetric(t, `quorate_costly_calls{call="deleted_keys"} 0`)
}
