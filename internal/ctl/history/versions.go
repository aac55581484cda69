package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// run shows the versions of one key.
func (w *work) run(ctx context.Context) error {
	page := &quoratepb.VersionsAnswer{NextBefore: w.before}
	err := w.Do(ctx, func(ctx context.Context, client *clientv3.Client) error {
		for {
			answer, err := quoratepb.NewHistoryClient(client.ActiveConnection()).Versions(ctx, &quoratepb.VersionsRequest{
				Key: []byte(w.key), BeforeRevision: page.GetNextBefore(), Limit: w.limit - int64(len(page.GetVersions())),
				KeysOnly: true, Authors: true, Linearizable: true})
			if status.Code(err) == codes.Unimplemented {
				return errUntold
			}
			if err != nil {
				return err
			}
			former := page.GetNextBefore()
			answer.Versions = append(page.GetVersions(), answer.GetVersions()...)
			page = answer
			switch next := page.GetNextBefore(); {
			case next == 0, int64(len(page.GetVersions())) >= w.limit:
				return nil
			case former != 0 && next >= former:
				return errors.New("the member's answers do not go on: it gave the same page twice")
			}
		}
	})
	switch {
	case err != nil:
		return err
	case len(page.GetVersions()) == 0 && w.before > 0:
		return command.Refused(fmt.Errorf("no version of %s below revision %d is kept: the history begins at revision %d",
			typed.Word(w.key), w.before, page.GetFirstRevision()))
	case len(page.GetVersions()) == 0:
		return command.Refused(fmt.Errorf("no version of %s is kept: the history begins at revision %d", typed.Word(w.key),
			page.GetFirstRevision()))
	case w.JSON():
		return command.PrintJSON(w.Streams.Out, output(w.key, page))
	}
	w.print(w.Streams.Out, page)
	return nil
}

func (w *work) print(out io.Writer, page *quoratepb.VersionsAnswer) {
	t := &command.Table{}
	t.Add("REVISION", "WRITTEN (UTC)", "USER", "THROUGH", "WHAT", "VERSION", "SIZE", "LEASE")
	for _, v := range page.GetVersions() {
		row := []string{strconv.FormatInt(v.GetModRevision(), 10), wording.Between(v.GetAfter(), v.GetBefore()),
			wording.User(v.GetAuthor()), wording.Through(v.GetAuthor()), kind(v)}
		if !v.GetDeleted() {
			row = append(row, strconv.FormatInt(v.GetVersion(), 10), progress.Size(v.GetSize()))
		}
		if v.GetLease() != 0 {
			row = append(row, command.HexID(uint64(v.GetLease())))
		}
		t.Add(row...)
	}
	t.Print(out)
	if next := page.GetNextBefore(); next > 0 {
		words := []string{"quorate", "history", w.key, "--before", strconv.FormatInt(next, 10)}
		command.Say(out, "Older versions: "+typed.Line(words...))
	} else if first := page.GetFirstRevision(); first > 1 {
		command.Say(out, fmt.Sprintf("The history begins at revision %d; what was before it is compacted.", first))
	}
}
