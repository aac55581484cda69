package rpc_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
)

// raiseLevel raises the active feature level to that of this build.
func raiseLevel(t *testing.T, b *machineBackend) {
	t.Helper()
	for _, c := range []func() kv.Command{
		func() kv.Command {
			return kv.Command{Publish: &kv.PublishOp{Member: uint64(testMember), Name: "one", Version: "3.7.1", Level: level.Own}}
		},
		func() kv.Command {
			return kv.Command{Raise: &kv.RaiseOp{Level: level.Own, Finalize: true, Of: b.machine.LevelView()}}
		},
	} {
		command := c()
		if command.By = b.machine.Users().ByMember(); command.Raise != nil && b.machine.Users().Enabled() {
			t.Fatal("raise the level before there are users")
		}
		if res, err := b.Propose(context.Background(), &command); err != nil || res.Err != nil {
			t.Fatal(err, res.Err)
		}
	}
}

// tell notes a moment.
func (b *machineBackend) tell(t *testing.T, ms int64) {
	t.Helper()
	res, err := b.Propose(context.Background(), &kv.Command{Moment: &kv.MomentOp{Time: ms,
		Member: uint64(testMember), Seen: b.machine.Store().Revision()}})
	if err != nil || res.Err != nil {
		t.Fatal(err, res.Err)
	}
}

// wroteIt says what an answer tells of by whom and when versions were written.
func wroteIt(t *testing.T, c *clientv3.Client, key string) (text string) {
	t.Helper()
	answer := must[*quoratepb.VersionsAnswer](t)(historyOf(t, c).Versions(waitContext(t),
		&quoratepb.VersionsRequest{Key: []byte(key), Authors: true}))
	for _, v := range answer.Versions {
		a := v.GetAuthor()
		text += fmt.Sprintf("%v %q %v %d-%d; ", a != nil, a.GetUser(), a.GetUserHidden(), v.GetAfter().GetUnixMs(),
			v.GetBefore().GetUnixMs())
	}
	return text
}

// Ensure that names of users are told to themselves and to root, that times are told as far as moments are known, that neither is
// told where it was not asked for, and that only users may ask which revision was at a time.
func TestHistory_authors(t *testing.T) {
	b := newMachineBackend(t)
	s := serve(t, b, nil)
	c, ctx := s.client(t), waitContext(t)
	must[*clientv3.PutResponse](t)(c.Put(ctx, "a", "before the level"))
	raiseLevel(t, b)
	must[*clientv3.PutResponse](t)(c.Put(ctx, "a", "before the users"))
	b.tell(t, 1000)
	enable(t, s)
	root, alice, nobody := s.as(t, "root"), s.as(t, "alice"), s.as(t, "")
	must[*clientv3.PutResponse](t)(root.Put(ctx, "a", "by root"))
	b.tell(t, 2000)
	at := b.machine.Store().Revision()
	must[*clientv3.PutResponse](t)(alice.Put(ctx, "a", "by alice"))
	const before = `true "" false 0-1000; false "" false 0-1000; `
	if got := wroteIt(t, alice, "a"); got != `true "alice" false 2000-0; true "" true 1000-2000; `+before {
		t.Errorf("alice learns %s", got)
	}
	if got := wroteIt(t, root, "a"); got != `true "alice" false 2000-0; true "root" false 1000-2000; `+before {
		t.Errorf("root learns %s", got)
	}
	bare := must[*quoratepb.VersionsAnswer](t)(historyOf(t, root).Versions(ctx, &quoratepb.VersionsRequest{Key: []byte("a")}))
	if v := bare.Versions[0]; v.Author != nil || v.After != nil || v.Before != nil {
		t.Errorf("not asked for: %v", v)
	}
	answer := must[*quoratepb.RevisionAtAnswer](t)(historyOf(t, alice).RevisionAt(ctx, &quoratepb.RevisionAtRequest{UnixMs: 2500}))
	if answer.AtLeast != int64(at) || answer.AtMost != int64(at)+1 || answer.After.GetMember() != "one" {
		t.Errorf("at 2500: %v", answer)
	}
	if _, err := historyOf(t, nobody).RevisionAt(ctx, &quoratepb.RevisionAtRequest{UnixMs: 1}); status.Code(err) == codes.OK {
		t.Error("nobody may ask for times")
	}
}

// Ensure that a time has the revisions that the store may have had, also before and behind all moments, and where clocks went
// back, and that a time which none can be is refused.
func TestHistory_RevisionAt(t *testing.T) {
	b := newMachineBackend(t)
	s := serve(t, b, nil)
	c, ctx := s.client(t), waitContext(t)
	ask := func(ms int64) string {
		t.Helper()
		a := must[*quoratepb.RevisionAtAnswer](t)(historyOf(t, c).RevisionAt(ctx,
			&quoratepb.RevisionAtRequest{UnixMs: ms, Linearizable: true}))
		return fmt.Sprintf("%d-%d of %d, again %d", a.AtLeast, a.AtMost, a.Revision, a.Repeated.GetRevision())
	}
	raiseLevel(t, b)
	if got := ask(5); got != "0-1 of 1, again 0" {
		t.Errorf("no moments: %s", got)
	}
	for _, ms := range []int64{1000, 2000, 1500, 3000} {
		must[*clientv3.PutResponse](t)(c.Put(ctx, "k", ""))
		b.tell(t, ms)
	}
	must[*clientv3.PutResponse](t)(c.Put(ctx, "k", "")) // revision 6
	for ms, want := range map[int64]string{999: "0-2 of 6, again 0", 1000: "2-3 of 6, again 0", 1499: "2-3 of 6, again 0",
		1500: "2-3 of 6, again 4", 2000: "4-5 of 6, again 0", 2999: "4-5 of 6, again 0", 3000: "5-6 of 6, again 0",
		9000: "5-6 of 6, again 0"} {
		if got := ask(ms); got != want {
			t.Errorf("at %d: %s, not %s", ms, got, want)
		}
	}
	for _, ms := range []int64{-1, math.MinInt64, math.MaxInt64, kv.MostMomentTime + 1} {
		_, err := historyOf(t, c).RevisionAt(ctx, &quoratepb.RevisionAtRequest{UnixMs: ms})
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "give a time from 1970 on") {
			t.Errorf("%d: %v", ms, err)
		}
	}
}

// Ensure that keys that are gone say who deleted them, and when: also where their key exists again, where one revision deleted many,
// and where a lease ended; that names are told to those who may learn them; and that nothing is told that was not asked for.
func TestHistory_Deleted_authors(t *testing.T) {
	b := newMachineBackend(t)
	s := serve(t, b, nil)
	c, ctx := s.client(t), waitContext(t)
	for _, key := range []string{"a/a", "a/b", "a/c", "a/old"} {
		must[*clientv3.PutResponse](t)(c.Put(ctx, key, "v"))
	}
	must[*clientv3.DeleteResponse](t)(c.Delete(ctx, "a/old")) // before the level
	raiseLevel(t, b)
	enable(t, s)
	root, alice := s.as(t, "root"), s.as(t, "alice")
	b.tell(t, 1000)
	must[*clientv3.DeleteResponse](t)(alice.Delete(ctx, "a/a"))
	must[*clientv3.PutResponse](t)(root.Put(ctx, "a/a", "again"))
	b.tell(t, 2000)
	must[*clientv3.DeleteResponse](t)(root.Delete(ctx, "a/b", clientv3.WithRange("a/d")))
	told := func(c *clientv3.Client, authors bool, at int64) (text string) {
		t.Helper()
		answer := must[*quoratepb.DeletedAnswer](t)(historyOf(t, c).Deleted(ctx, &quoratepb.DeletedRequest{Key: []byte("a"),
			RangeEnd: []byte("b"), Existing: true, Authors: authors, AtRevision: at}))
		for _, k := range answer.Keys {
			a := k.GetAuthor()
			text += fmt.Sprintf("%s %d %v %q %v %d-%d; ", k.Key, k.DeletedRevision, a != nil, a.GetUser(), a.GetUserHidden(),
				k.GetAfter().GetUnixMs(), k.GetBefore().GetUnixMs())
		}
		return text
	}
	const rootSees = `a/a 9 true "alice" false 1000-2000; a/b 11 true "root" false 2000-0; a/c 11 true "root" false 2000-0; ` +
		`a/old 6 false "" false 0-1000; `
	if got := told(root, true, 0); got != rootSees {
		t.Errorf("root learns %s", got)
	}
	if got := told(alice, true, 0); got != strings.ReplaceAll(rootSees, `"root" false`, `"" true`) {
		t.Errorf("alice learns %s", got)
	}
	// As of a revision, a key that was deleted and written again was only written: nobody is its deleter.
	if got := told(root, true, 6); got != `a/a 0 false "" false 0-0; a/b 11 true "root" false 2000-0; a/c 11 true "root" false 2000-0; ` {
		t.Errorf("as of revision 6 root learns %s", got)
	}
	if got := told(root, false, 0); strings.Contains(got, "root") || strings.Contains(got, "2000") {
		t.Errorf("not asked for: %s", got)
	}
}

// Ensure that the changes of a range are told, the newest first, in pages, by whom and when, to those who may read it; that names
// are told as for versions; and that a page which is none is refused.
func TestHistory_Changes(t *testing.T) {
	b := newMachineBackend(t)
	s := serve(t, b, nil)
	c, ctx := s.client(t), waitContext(t)
	raiseLevel(t, b)
	enable(t, s)
	root, alice := s.as(t, "root"), s.as(t, "alice")
	must[*clientv3.PutResponse](t)(alice.Put(ctx, "a/1", ""))
	must[*clientv3.PutResponse](t)(root.Put(ctx, "other", ""))
	must[*clientv3.PutResponse](t)(root.Put(ctx, "a/2", ""))
	b.tell(t, 1000)
	must[*clientv3.PutResponse](t)(alice.Put(ctx, "a/1", "v"))
	must[*clientv3.DeleteResponse](t)(alice.Delete(ctx, "a/", clientv3.WithPrefix()))
	told := func(c *clientv3.Client, r *quoratepb.ChangesRequest) (text string) {
		t.Helper()
		r.Key, r.RangeEnd, r.Authors = []byte("a/"), []byte("a0"), true
		for {
			answer := must[*quoratepb.ChangesAnswer](t)(historyOf(t, c).Changes(ctx, r))
			for _, k := range answer.Changes {
				text += fmt.Sprintf("%d %s %v %v %q %v %d-%d; ", k.ModRevision, k.Key, k.Created, k.Deleted, k.GetAuthor().GetUser(),
					k.GetAuthor().GetUserHidden(), k.GetAfter().GetUnixMs(), k.GetBefore().GetUnixMs())
			}
			if r.Page = answer.NextPage; len(r.Page) == 0 {
				return text
			}
		}
	}
	const all = `8 a/2 false true "alice" false 1000-0; 8 a/1 false true "alice" false 1000-0; 7 a/1 false false "alice" false 1000-0; ` +
		`6 a/2 true false "root" false 0-1000; 4 a/1 true false "alice" false 0-1000; `
	for _, limit := range []int64{0, 1, 2} {
		if got := told(root, &quoratepb.ChangesRequest{Limit: limit}); got != all {
			t.Errorf("limit %d: root learns %s", limit, got)
		}
	}
	if got := told(alice, &quoratepb.ChangesRequest{}); got != strings.Replace(all, `"root" false`, `"" true`, 1) {
		t.Errorf("alice learns %s", got)
	}
	if got := told(root, &quoratepb.ChangesRequest{BeforeRevision: 7}); got != all[strings.Index(all, "6 a/2"):] {
		t.Errorf("before revision 7: %s", got)
	}
	for name, r := range map[string]*quoratepb.ChangesRequest{"no page": {Key: []byte("a"), Page: []byte("x")},
		"page at nothing": {Key: []byte("a"), Page: make([]byte, 13)}, "negative": {Key: []byte("a"), BeforeRevision: -1}, "no key": {}} {
		if _, err := historyOf(t, root).Changes(ctx, r); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := historyOf(t, alice).Changes(ctx, &quoratepb.ChangesRequest{Key: []byte("other")}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("alice may not read that: %v", err)
	}
	if _, err := historyOf(t, c).Changes(ctx, &quoratepb.ChangesRequest{Key: []byte("a")}); status.Code(err) == codes.OK {
		t.Error("nobody learns changes")
	}
}
