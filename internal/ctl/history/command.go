package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ctl/wording"
)

const long = `Show the versions of KEY, the newest first, its deletions among them: by which user and through which member each
was written, and between which times.

The history goes back to the last compaction; the version before that is shown, but not who wrote it. Users and times are kept
from feature level 2 on. Times are those of the leader's clock, noted about every 10 seconds while the store changes. Names of
other users are shown to users with the role root.

With --prefix: the changes of all keys that begin with KEY, the newest first; an empty KEY means all keys.`

const example = `  quorate history /app/config
  quorate history /app/config --limit 5 -o json
  quorate history /app/ --prefix
  quorate get /app/config --rev 4711`

// defaultLimit is how many versions are printed.
const defaultLimit = 50

type work struct {
	*command.Connection
	key    string
	limit  int64
	before int64
	prefix bool
}

// New is the command `quorate history`.
func New(s command.Streams) *cobra.Command {
	w := &work{Connection: command.NewConnection(s)}
	cmd := w.AddTo(&cobra.Command{
		Use:     "history KEY",
		Short:   "Show by whom and when each version of a key was written, or the key deleted",
		Long:    long,
		Example: example,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if w.key = args[0]; w.key == "" && !w.prefix {
				return command.Usagef("write the key: it is not empty")
			}
			if w.limit < 1 {
				return command.Usagef("--limit %d: give how many versions to show", w.limit)
			}
			if w.before < 0 {
				return command.Usagef("--before %d: give a revision", w.before)
			}
			if w.prefix {
				return w.runPrefix(cmd.Context())
			}
			return w.run(cmd.Context())
		},
	})
	cmd.Flags().BoolVar(&w.prefix, "prefix", false, "the changes of all keys that begin with KEY")
	cmd.Flags().Int64Var(&w.limit, "limit", defaultLimit, "how many versions, or changes, to show at most")
	cmd.Flags().Int64Var(&w.before, "before", 0, "only versions, or changes, below this revision")
	return cmd
}

var errUntold = command.Refused(errors.New("this server does not tell the history of keys: it is an etcd, or an earlier build " +
	"of Quorate"))

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
