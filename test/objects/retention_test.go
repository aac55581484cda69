package objects_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/backup/prune"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/objects"
)

const shippedCluster = 0xabcdef

// shippedFor puts what a member shipped for so many hours until now: a segment each two hours, a base each 12.
func shippedFor(t *testing.T, s objects.Store, hours int) {
	t.Helper()
	put := func(name string, content []byte) {
		if err := objects.PutOnce(t.Context(), s, name, bytes.NewReader(content), int64(len(content))); err != nil {
			t.Fatal(err)
		}
	}
	file := []byte("a table")
	put(backup.FileName(shippedCluster, backup.HashOf(file)), file)
	begun := time.Now().Add(-time.Duration(hours) * time.Hour).UnixMilli()
	for i := 1; i <= hours/2; i++ {
		n := backup.SegmentName{Cluster: shippedCluster, First: consensus.Index(i), Before: uint64(i - 1),
			End:    backup.Point{Index: consensus.Index(i), Sum: uint64(i)},
			Moment: backup.Moment{Revision: kv.Revision(i), Time: begun + int64(i)*7200_000}, Hash: backup.HashOf([]byte{byte(i)})}
		put(n.String(), []byte{byte(i)})
		if i%6 == 0 {
			m := backup.Manifest{Cluster: shippedCluster, Index: n.End.Index, Sum: backup.Hex(n.End.Sum), Revision: n.Revision,
				Time: n.Time, Level: 1, Files: []backup.File{{Name: "1", Size: int64(len(file)), Hash: backup.HashOf(file)}}}
			name, content := m.Encode()
			put(name.String(), content)
		}
	}
}

// dated is a place whose server took bases when they were made. The clock of a real server cannot be set, and retention
// keeps what a place took within the window.
type dated struct{ objects.Store }

func (d dated) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, bool, error) {
	found, more, err := d.Store.List(ctx, prefix, after, limit)
	for i := range found {
		if n, err := backup.ParseBase(found[i].Name); err == nil {
			found[i].Time = time.UnixMilli(n.Time)
		}
	}
	return found, more, err
}

// retains does a round of retention.
func retains(ctx context.Context, s objects.Store) prune.Report {
	s = dated{s}
	p := prune.New(prune.Config{Cluster: shippedCluster, Member: 3, Rule: keep.Rule{Window: 72 * time.Hour, Daily: 6}})
	p.Begin(time.Now().UnixMilli(), 0)
	for ops := p.Take(); len(ops) > 0; ops = p.Take() {
		for i := range ops {
			p.Done(ops[i].ID, fetch.Prune(ctx, s, &ops[i]))
		}
	}
	return p.Report()
}

// Ensure that retention removes from real servers what its rule does not keep, and nothing else, also if requests of its rounds
// are lost, one after the other, before or after the server did the work; and that a server that lets nobody delete is told.
func TestRetention(t *testing.T) {
	for _, v := range servers(t) {
		t.Run(v.name, func(t *testing.T) {
			between := newProxy(t, v.address)
			s := open(t, between.address(), v.bucket(t))
			shippedFor(t, s, 10*24)
			between.inject(-1, isDelete, refuse(http.StatusForbidden, "AccessDenied"))
			if r := retains(t.Context(), s); r.Done || !r.Refused || !strings.Contains(r.Why, objects.ErrDenied.Error()) {
				t.Fatalf("without the right to delete: %+v", r)
			}
			between.heal()
			before := reachable(t, s)
			lost, rounds := 0, 0
			for done := false; !done; rounds++ {
				strikes := 0
				between.inject(-1, always, func(p *proxy, w http.ResponseWriter, r *http.Request) bool {
					if strikes++; strikes != lost/2+1 {
						return false
					}
					if lost++; lost%2 == 0 {
						return lostAfter(p, w, r)
					}
					return lostBefore(p, w, r)
				})
				r := retains(t.Context(), s)
				done = r.Done && r.Removed == 0
				between.heal()
				if after := reachable(t, s); after != before {
					t.Fatalf("round %d: %d moments of the window can be restored, and %d could", rounds, after, before)
				}
			}
			c, err := fetch.Catalog(t.Context(), s, shippedCluster)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d rounds, %d lost requests, %d bases and %d segments stay", rounds, lost, len(c.Bases), len(c.Segments))
			if lost < 10 || len(c.Bases) > 10 || c.Segments[0].First < 70 || c.Kept == nil {
				t.Errorf("%d lost, %d bases, the log from %d, note %v", lost, len(c.Bases), c.Segments[0].First, c.Kept)
			}
		})
	}
}

// reachable counts the moments of the last 72 hours that can be restored.
func reachable(t *testing.T, s objects.Store) (n int) {
	t.Helper()
	c, err := fetch.Catalog(t.Context(), s, shippedCluster)
	if err != nil {
		t.Fatal(err)
	}
	newest, _ := c.Newest()
	for at := newest.Time - 72*3600_000; at <= newest.Time; at += 3600_000 {
		if _, err := c.Plan(backup.Target{Time: at}, func(backup.Hash) bool { return false }); err == nil {
			n++
		}
	}
	return n
}
