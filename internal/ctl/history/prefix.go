package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/wording"
	"github.com/quorate/quorate/internal/undelete"
)

// runPrefix shows the changes of all keys with a prefix.
func (w *work) runPrefix(ctx context.Context) error {
	key, end := undelete.Prefix([]byte(w.key))
	ask := &quoratepb.ChangesRequest{Key: key, RangeEnd: end, BeforeRevision: w.before, Authors: true, Linearizable: true}
	all := &quoratepb.ChangesAnswer{}
	err := w.Do(ctx, func(ctx context.Context, client *clientv3.Client) error {
		for {
			ask.Limit = w.limit + 1 - int64(len(all.GetChanges())) // one more tells whether a revision is told as a whole
			answer, err := quoratepb.NewHistoryClient(client.ActiveConnection()).Changes(ctx, ask)
			if status.Code(err) == codes.Unimplemented {
				return errUntold
			}
			if err != nil {
				return err
			}
			answer.Changes = append(all.GetChanges(), answer.GetChanges()...)
			all = answer
			switch next := all.GetNextPage(); {
			case len(next) == 0, int64(len(all.GetChanges())) > w.limit:
				return nil
			case bytes.Equal(next, ask.GetPage()):
				return errors.New("the member's answers do not go on: it gave the same page twice")
			default:
				ask.Page = next
			}
		}
	})
	next := w.cut(all)
	switch {
	case err != nil:
		return err
	case len(all.GetChanges()) == 0 && w.before > 0:
		return command.Refused(fmt.Errorf("no key that begins with %s was changed below revision %d: the history begins at "+
			"revision %d", typed.Word(w.key), w.before, all.GetFirstRevision()))
	case len(all.GetChanges()) == 0:
		return command.Refused(fmt.Errorf("no key that begins with %s was changed: the history begins at revision %d",
			typed.Word(w.key), all.GetFirstRevision()))
	case w.JSON():
		return command.PrintJSON(w.Streams.Out, changesOutput(w.key, all, next))
	}
	w.printChanges(w.Streams.Out, all, next)
	return nil
}

// cut leaves out the changes beyond the limit, and those of a revision of which not all would be shown, unless there are no
// others. It returns below which revision the rest is: 0 if there is none.
func (w *work) cut(all *quoratepb.ChangesAnswer) (next int64) {
	list := all.GetChanges()
	if int64(len(list)) <= w.limit {
		return 0
	}
	last := list[w.limit-1].GetModRevision()
	if list[w.limit].GetModRevision() != last {
		all.Changes = list[:w.limit]
		return last
	}
	whole := slices.IndexFunc(list, func(c *quoratepb.KeyChange) bool { return c.GetModRevision() == last })
	if whole == 0 {
		fmt.Fprintf(w.Streams.Err, "revision %d has more changes than these: give a larger --limit to see them\n", last)
		all.Changes = list[:w.limit]
		return last
	}
	all.Changes = list[:whole]
	return last + 1
}

func (w *work) printChanges(out io.Writer, all *quoratepb.ChangesAnswer, next int64) {
	t := &command.Table{}
	t.Add("REVISION", "WRITTEN (UTC)", "USER", "THROUGH", "WHAT", "KEY")
	for _, c := range all.GetChanges() {
		t.Add(strconv.FormatInt(c.GetModRevision(), 10), wording.Between(c.GetAfter(), c.GetBefore()),
			wording.User(c.GetAuthor()), wording.Through(c.GetAuthor()), kindOf(c), wording.Key(c.GetKey()))
	}
	t.Print(out)
	if next > 0 {
		words := []string{"quorate", "history", w.key, "--prefix", "--before", strconv.FormatInt(next, 10)}
		command.Say(out, "Older changes: "+typed.Line(words...))
	} else if first := all.GetFirstRevision(); first > 1 {
		command.Say(out, fmt.Sprintf("The history begins behind revision %d; changes up to it are compacted.", first))
	}
}
