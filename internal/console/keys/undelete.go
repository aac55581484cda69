package keys

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/undelete"
)

const (
	// mostUndeleted is how many keys one form restores: they are written within the time that an action has.
	mostUndeleted = 500
	mostListed    = 100 // of the keys of a plan
	// planPatience is how long a call of a plan may take.
	planPatience = 1500 * time.Millisecond
)

// wanted is what a query or a form asks to undelete.
type wanted struct {
	name []byte // a key, or a prefix
	one  bool   // only the key that is exactly name
	at   int64  // the state of this revision; 0: what each deletion took
}

func wantedIn(q url.Values) (w wanted, err error) {
	if w.one = q.Has("key"); w.one {
		w.name, err = keyIn(q)
	} else {
		w.name, err = prefixIn(q)
	}
	if err == nil {
		w.at, err = revisionIn(q, "at")
	}
	return w, err
}

// plan plans the undelete.
func (w *wanted) plan(ctx context.Context, r *page.Request) (*undelete.Plan, error) {
	cluster := undelete.Cluster{Conn: r.Conn, Timeout: planPatience, Patience: planPatience}
	ask := undelete.Request{Key: w.name, At: w.at, Limit: mostUndeleted, Leased: w.one}
	if !w.one {
		ask.Key, ask.End = rangeOf(w.name)
	}
	plan, err := cluster.Plan(ctx, ask, nil)
	if refused, ok := errors.AsType[*undelete.RevisionError](err); ok {
		return nil, badf("This cannot be planned: %s.", refused.Error())
	}
	return plan, err
}

func (w *wanted) field() string {
	if w.one {
		return "key"
	}
	return "prefix"
}

// planRow is a key of a plan.
type planRow struct {
	Name, Href              string
	Deleted, Revision, Size int64
	Lease                   int64
}

// keptRow is a key that is left alone.
type keptRow struct {
	Name, Href string
	Revision   int64
	Same       bool
}

// planView is what an undelete would do.
type planView struct {
	Prefix   string
	One      bool // only this key
	All      bool // all keys
	Field    string
	Typed    string // the text to type
	At       int64
	Revision int64
	First    int64
	Keys     int
	Bytes    int64
	Leased   int
	LeftOut  int // keys that had a lease
	Rows     []planRow
	Left     int // keys of the plan that are not listed
	Kept     []keptRow
	Same     int
	Other    int
	More     bool // there are more keys than one form restores
	Sum      string
	Admin    bool
	List     string
}

// preview shows what would be written.
func preview(ctx context.Context, r *page.Request) (any, error) {
	w, err := wantedIn(r.Query)
	if err != nil {
		return nil, err
	}
	plan, err := w.plan(ctx, r)
	if err != nil {
		return nil, err
	}
	v := &planView{Prefix: short(w.name), One: w.one, All: len(w.name) == 0, Field: w.field(), Typed: nameOf(w.name), At: w.at,
		Revision: plan.Revision, First: plan.First, Keys: len(plan.Items), Bytes: plan.Bytes,
		Leased: plan.Leased, LeftOut: plan.LeftOut,
		Same: plan.Kept.Same, Other: plan.Kept.Other, More: plan.More != nil, Sum: sumOf(plan), Admin: r.Admin,
		List: toPrefix("/keys/deleted", w.name, "at", number(w.at))}
	for i := range plan.Items[:min(len(plan.Items), mostListed)] {
		one := &plan.Items[i]
		v.Rows = append(v.Rows, planRow{Name: short(one.Key), Deleted: one.Deleted, Size: one.Size, Lease: one.Lease,
			Revision: one.ModRevision, Href: toKey("/keys/key", one.Key, "rev", number(one.Read))})
	}
	v.Left = len(plan.Items) - len(v.Rows)
	for _, one := range plan.Kept.Listed[:min(len(plan.Kept.Listed), mostListed)] {
		v.Kept = append(v.Kept, keptRow{short(one.Key), toKey("/keys/key", one.Key), one.ModRevision, one.Same})
	}
	return v, nil
}

func undeleteCommand(r *page.Request) string {
	w, err := wantedIn(r.Query)
	if err != nil {
		return ""
	}
	words := []string{"undelete"}
	if w.one {
		words = append(words, "--exact")
	}
	if w.at > 0 {
		words = append(words, "--at", number(w.at))
	}
	return command(r, w.name, words...)
}

// sumOf tells plans apart: a form does what its preview has shown, or nothing.
func sumOf(p *undelete.Plan) string {
	sum := sha256.New()
	for i := range p.Items {
		one := &p.Items[i]
		fmt.Fprintf(sum, "%d %d %d ", len(one.Key), one.Read, one.ModRevision)
		sum.Write(one.Key)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// undeleteAction restores the keys of a plan that was shown.
func undeleteAction(ctx context.Context, r *page.Request) (out page.Outcome, err error) {
	w, err := wantedIn(r.Form)
	if err != nil {
		return out, err
	}
	if err := confirmed(r.Form.Get("typed"), w.name, "the "+w.field()); err != nil {
		return out, err
	}
	plan, err := w.plan(ctx, r)
	if err != nil {
		return out, err
	}
	if sumOf(plan) != r.Form.Get("plan") {
		return out, page.FormError("The keys changed since the preview was made. Nothing was written: look at the preview " +
			"again.")
	}
	cluster := undelete.Cluster{Conn: r.Conn, Patience: 3 * time.Second}
	result, err := cluster.Apply(ctx, plan, nil)
	said := outcomeOf(result, len(plan.Items))
	if err != nil {
		why := page.Text(status.Convert(err).Message())
		return out, page.FormError(said + " Then it stopped: " + why + ". Open the preview again to go on.")
	}
	if w.one {
		return page.Outcome{To: toKey("/keys/key", w.name), Said: said}, nil
	}
	return page.Outcome{To: toPrefix("/keys/deleted", w.name, "at", number(w.at)), Said: said}, nil
}

// outcomeOf says what became of a plan.
func outcomeOf(r *undelete.Result, of int) string {
	parts := []string{fmt.Sprintf("%s restored, %s", plural.Of(r.Restored, "key was", "keys were"), page.Bytes(r.Bytes))}
	for _, part := range []struct {
		n         int
		one, more string
	}{
		{r.Came.Same + r.Came.Other, "exists by now and was left alone", "exist by now and were left alone"},
		{len(r.Gone), "was compacted meanwhile", "were compacted meanwhile"},
		{len(r.TooLarge), "is larger than the cluster takes", "are larger than the cluster takes"},
		{of - r.Settled(), "was not reached", "were not reached"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, plural.Word(part.n, part.one, part.more)))
		}
	}
	return strings.Join(parts, "; ") + "."
}
