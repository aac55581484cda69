package rpc_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
)

// topOf returns the service of the member that a client is connected to.
func topOf(t *testing.T, c *clientv3.Client) quoratepb.TopClient {
	t.Helper()
	if _, err := c.AuthStatus(waitContext(t)); err != nil {
		t.Fatal(err)
	}
	return quoratepb.NewTopClient(c.ActiveConnection())
}

// topBy asks for the long window: a slow test must not outlast it.
func topBy(t *testing.T, api quoratepb.TopClient, by quoratepb.TopWeight) *quoratepb.TopAnswer {
	t.Helper()
	answer, err := api.Get(waitContext(t), &quoratepb.TopRequest{By: by, Window: quoratepb.TopWindow_TOP_WINDOW_LONG})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// rowOf is the row of an operation on a prefix, or of a user; an empty one if there is none.
func rowOf(r *quoratepb.TopRanking, operation, prefixOrUser string) *quoratepb.TopRow {
	for _, row := range r.GetRows() {
		if row.GetOperation() == operation && string(row.GetPrefix())+row.GetUser() == prefixOrUser {
			return row
		}
	}
	return &quoratepb.TopRow{}
}

// Ensure that large calls are all counted, with prefix, operation, user and bytes, and small ones by a sample; with users
// whom the member knows and by the patient road alike.
func TestTop_Get_counts(t *testing.T) {
	const large, small, value = 12, 800, 70 << 10
	_, root, alice, _ := secured(t)
	ctx := waitContext(t)
	for i := range large {
		if _, err := alice.Put(ctx, fmt.Sprintf("a/large/x/%d", i), strings.Repeat("v", value)); err != nil {
			t.Fatal(err)
		}
		if _, err := root.Put(ctx, "a/prev/x", strings.Repeat("w", value),
			clientv3.WithPrevKV()); err != nil { // in a goroutine
			t.Fatal(err)
		}
		if _, err := alice.Get(ctx, fmt.Sprintf("a/large/x/%d", i)); err != nil {
			t.Fatal(err)
		}
		read := clientv3.OpGet("a/large/x/0")
		if _, err := alice.Txn(ctx).If(clientv3.Compare(clientv3.Version("a/large/x/0"), ">",
			0)).Then(read).Commit(); err != nil {
			t.Fatal(err)
		}
		if _, err := alice.Put(ctx, fmt.Sprintf("s/denied/%d", i), strings.Repeat("v", value)); err == nil {
			t.Fatal("alice may write there")
		}
	}
	if _, err := alice.Get(ctx, "a/large/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range small / 8 {
				if _, err := alice.Put(ctx, fmt.Sprintf("a/s/x/%d", i), "v"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	answer := topBy(t, topOf(t, root), quoratepb.TopWeight_TOP_WEIGHT_BYTES)
	for _, row := range []struct {
		operation, prefix string
		count             uint64
	}{{"put", "a/large/x/", large}, {"put", "a/prev/", large}, {"range", "a/large/x/", large}, {"txn", "a/large/x/", large},
		{"range", "a/large/", 1}, {"put", "s/denied/", large}} {
		got := rowOf(answer.GetPrefixes(), row.operation, row.prefix)
		if c := got.GetCounts(); c.GetOperations() != row.count || c.GetBytes() < row.count*value || c.GetProcessorNs() == 0 ||
			got.GetMost() < c.GetBytes() {
			t.Errorf("%s of %s: %v", row.operation, row.prefix, got)
		}
	}
	counted := rowOf(answer.GetPrefixes(), "put", "a/s/x/").GetCounts().GetOperations()
	if oneOf := uint64(answer.GetOneOf()); counted < small/4 || counted > small*3 || oneOf != 16 || counted%oneOf != 0 {
		t.Errorf("%d small calls were counted as %d, one of %d", small, counted, oneOf)
	}
	if c := rowOf(answer.GetClients(), "", "alice"); c.GetHost() != "127.0.0.1" ||
		c.GetCounts().GetOperations() != 4*large+1+counted {
		t.Errorf("of alice: %v", c)
	}
	if c := rowOf(answer.GetClients(), "", "root").GetCounts(); c.GetOperations() < large {
		t.Errorf("of root: %v", c)
	}
	if total := answer.GetPrefixes().GetTotal(); total.GetOperations() < 5*large+1+counted || answer.GetCoversMs() <= 0 {
		t.Errorf("the total is %v in %d ms", total, answer.GetCoversMs())
	}
	shorter, err := topOf(t, root).Get(ctx, &quoratepb.TopRequest{By: quoratepb.TopWeight_TOP_WEIGHT_BYTES})
	if err != nil || shorter.GetCoversMs() > 10_000 ||
		shorter.GetPrefixes().GetTotal().GetOperations() > answer.GetPrefixes().GetTotal().GetOperations() {
		t.Errorf("the short window covers %d ms, has %v, %v", shorter.GetCoversMs(), shorter.GetPrefixes().GetTotal(), err)
	}
}

// Ensure that watchers are counted by prefix and user, and messages to them as operations.
func TestTop_Get_watchers(t *testing.T) {
	_, root, alice, _ := secured(t)
	ctx := waitContext(t)
	var events []clientv3.WatchChan
	for i := range 5 {
		events = append(events, alice.Watch(ctx, fmt.Sprintf("a/w/x/%d", i), clientv3.WithCreatedNotify()))
	}
	events = append(events, root.Watch(ctx, "s/w/", clientv3.WithPrefix(), clientv3.WithCreatedNotify()))
	for _, c := range events {
		if answer := <-c; !answer.Created {
			t.Fatalf("not created: %v", answer)
		}
	}
	if _, err := alice.Put(ctx, "a/w/x/0", strings.Repeat("v", 70<<10)); err != nil {
		t.Fatal(err)
	}
	if answer := <-events[0]; len(answer.Events) != 1 {
		t.Fatalf("got %v", answer)
	}
	answer := topBy(t, topOf(t, root), quoratepb.TopWeight_TOP_WEIGHT_OPERATIONS)
	for _, row := range []struct {
		ranking *quoratepb.TopRanking
		name    string
		want    uint64
	}{{answer.GetWatched(), "a/w/x/", 5}, {answer.GetWatched(), "s/w/", 1}, {answer.GetWatching(), "alice", 5},
		{answer.GetWatching(), "root", 1}} {
		if got := rowOf(row.ranking, "", row.name); got.GetCounts().GetWatchers() != row.want || got.GetMost() != row.want {
			t.Errorf("%s: %v, want %d watchers", row.name, got, row.want)
		}
	}
	if sent := rowOf(answer.GetPrefixes(), "watch", "a/w/x/").GetCounts(); sent.GetOperations() != 1 ||
		sent.GetBytes() < 70<<10 {
		t.Errorf("sent to watchers: %v", sent)
	}
	if total := answer.GetWatched().GetTotal().GetWatchers(); total != 6 || answer.GetOneWatcherOf() != 1 {
		t.Errorf("%d watchers, one of %d", total, answer.GetOneWatcherOf())
	}
}

// Ensure that only root asks while there are users, and that a request for what there is not is refused.
func TestTop_Get_refused(t *testing.T) {
	_, root, alice, nobody := secured(t)
	ctx := waitContext(t)
	for name, c := range map[string]*clientv3.Client{"alice": alice, "nobody": nobody} {
		if answer, err := topOf(t, c).Get(ctx, &quoratepb.TopRequest{}); err == nil {
			t.Errorf("%s asks, and gets %v", name, answer)
		}
	}
	for _, wrong := range []*quoratepb.TopRequest{{By: 3}, {By: -1}, {Window: 2}} {
		if _, err := topOf(t, root).Get(ctx, wrong); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

// Ensure that a client that names each key otherwise, and names long ones, makes no long answer, and hides no other client.
func TestTop_Get_spray(t *testing.T) {
	s := serveMember(t, nil)
	c, ctx := s.client(t), waitContext(t)
	long := strings.Repeat("k", 70<<10)
	for i := range 300 { // all puts are counted: they are large
		if _, err := c.Get(ctx, fmt.Sprintf("%03d\xff\x1b[2J/%s", i, long)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Put(ctx, fmt.Sprintf("%03d\xff\x1b[2J/", i), long); err != nil {
			t.Fatal(err)
		}
		if i%20 == 0 {
			if _, err := c.Put(ctx, "work/x", long+long); err != nil {
				t.Fatal(err)
			}
		}
	}
	answer := topBy(t, topOf(t, c), quoratepb.TopWeight_TOP_WEIGHT_BYTES)
	if n := len(answer.GetPrefixes().GetRows()); n > 128 || proto.Size(answer) > 16<<10 {
		t.Errorf("%d rows in %d bytes", n, proto.Size(answer))
	}
	first := answer.GetPrefixes().GetRows()[0]
	if string(first.GetPrefix()) != "work/" || first.GetCounts().GetOperations() < 13 {
		t.Errorf("the first is %v", first)
	}
}

// Ensure that those who ask again at once get the same answer: making one keeps calls waiting.
func TestTop_Get_again(t *testing.T) {
	s := serveMember(t, nil)
	c, ctx := s.client(t), waitContext(t)
	api := topOf(t, c)
	first := topBy(t, api, quoratepb.TopWeight_TOP_WEIGHT_BYTES)
	for range 20 {
		if _, err := c.Put(ctx, "a/b", strings.Repeat("v", 70<<10)); err != nil {
			t.Fatal(err)
		}
		again := topBy(t, api, quoratepb.TopWeight_TOP_WEIGHT_BYTES)
		grown := again.GetCoversMs() - first.GetCoversMs()
		if same := proto.Equal(first, again); !same && grown < 500 {
			t.Errorf("an answer %d ms later is another one", grown)
		}
	}
}
