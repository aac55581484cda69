package keys

import (
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/console/page"
)

// Bounds of a look at changes.
const (
	firstRevisions = 100
	mostRevisions  = 10_000
)

// watchView are the changes since a revision.
type watchView struct {
	Prefix   string
	All      bool
	From     int64 // changes from here on are meant
	Start    int64 // and looked at from here on
	Revision int64 // of the store, up to which they were looked at
	Rows     []eventRow
	Older    int    // changes that are not listed, the oldest ones
	Skipped  bool   // it began behind the first revision that is meant and kept
	Before   int64  // then: the last revision that it did not look at
	Cut      bool   // it ended before the present
	Upto     int64  // the last revision that was looked at
	Ahead    bool   // the store has not come to the revision that is meant
	Go       string // link to what was not looked at, behind Upto
	Lost     int64  // changes before this revision are compacted; 0: none that are meant
	Member   string
	None     bool // no revision to begin with was given
	Rights   *rights
}

// askView is the form above the changes.
type askView struct {
	Value string
	From  string
	Tree  string
}

// askWatch shows the form. Without a revision in the query it begins with the next one.
func askWatch(ctx context.Context, r *page.Request) (any, error) {
	v := askView{Value: cut(r.Query.Get("prefix"), mostLink), From: r.Query.Get("from")}
	if prefix, err := prefixIn(r.Query); err == nil {
		v.Tree = toPrefix("/keys", prefix)
	}
	if v.From == "" {
		prefix, err := prefixIn(r.Query)
		if err != nil {
			return v, nil
		}
		start, _ := rangeOf(prefix)
		now, err := pb.NewKVClient(r.Conn).Range(ctx, &pb.RangeRequest{Key: start, KeysOnly: true, Serializable: true})
		if err == nil {
			v.From = number(now.GetHeader().GetRevision() + 1)
		}
	}
	return v, nil
}

// watch shows the last changes since the revision of the query. Each look is by itself, so that it costs the same however long
// somebody looks; revisions that it did not look at are named.
func watch(ctx context.Context, r *page.Request) (any, error) {
	prefix, err := prefixIn(r.Query)
	if err != nil {
		return nil, err
	}
	from, err := revisionIn(r.Query, "from")
	if err != nil {
		return nil, err
	}
	v := &watchView{Prefix: short(prefix), All: len(prefix) == 0, From: from, Member: r.Member, None: from == 0}
	if v.None {
		return v, nil
	}
	start, end := rangeOf(prefix)
	now, err := pb.NewKVClient(r.Conn).Range(ctx, &pb.RangeRequest{Key: start, KeysOnly: true, Serializable: true})
	if err == nil {
		v.Revision = now.GetHeader().GetRevision()
		err = v.look(ctx, &tail{conn: r.Conn, key: start, end: end})
	}
	if err != nil {
		v.Rights, err = rightsOf(ctx, r, err)
		return v, err
	}
	if v.Cut {
		v.Go = toPrefix("/keys/watch", prefix, "from", number(v.Upto+1))
	}
	return v, nil
}

// look receives changes from as far back as the bounds allow. It begins with few revisions: these may have all changes that are
// shown. If they have more than an attempt receives it looks at fewer, so that the last one is shown in any case, else at more.
func (v *watchView) look(ctx context.Context, t *tail) error {
	v.Start = v.Revision + 1
	for back := int64(firstRevisions); ; {
		least := max(v.From, v.Lost)
		found, start := *t, max(least, v.Revision-back+1)
		// A watch that begins at a revision to come is asked for the present one: the member refuses it in the same cases.
		compacted, err := found.receive(ctx, min(start, v.Revision), start)
		if compacted > v.Lost {
			v.Lost = compacted
			continue
		}
		if err != nil {
			return err
		}
		if more := back > firstRevisions; more && found.cut {
			return nil
		}
		v.take(&found, start)
		late := found.cut && found.upto == 0 // nothing came
		if late && (back == 1 || start >= v.Revision || ctx.Err() != nil) {
			return context.DeadlineExceeded
		}
		switch {
		case found.cut && back > 1 && start < v.Revision && ctx.Err() == nil:
			back = max(1, min(back, v.Revision-start+1)/4)
		case back < firstRevisions, found.cut, start == least, found.received >= mostEvents, back >= mostRevisions:
			return nil
		default:
			back *= 10
		}
	}
}

// take makes what was received what is shown.
func (v *watchView) take(t *tail, start int64) {
	v.Start, v.Rows, v.Older, v.Upto = start, slices.Clone(t.rows), t.older, max(t.upto, start-1)
	v.Cut, v.Ahead = t.cut && v.Upto < v.Revision, v.Start > v.Upto
	v.Skipped, v.Before = v.Start > max(v.From, v.Lost), v.Start-1
	slices.Reverse(v.Rows)
}

func watchCommand(r *page.Request) string {
	prefix, err := prefixIn(r.Query)
	if err != nil {
		return ""
	}
	words := []string{"watch", "--prefix"}
	if from, err := revisionIn(r.Query, "from"); err == nil && from > 0 {
		words = append(words, "--rev", number(from))
	}
	return command(r, prefix, words...)
}
