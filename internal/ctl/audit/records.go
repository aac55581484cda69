package audit

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// defaultRecords is how many records are printed, and mostRecords how many a member gives.
const (
	defaultRecords = 50
	mostRecords    = 200
)

func newRecords(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	r := new(quoratepb.AuditRecordsRequest)
	user, prefix := "", ""
	cmd := c.AddTo(&cobra.Command{
		Use:   "records",
		Short: "Print the latest records of the member that answers, the newest first",
		Long: "Print the latest records of the member that answers, the newest first, if one of its outputs is a file. The " +
			"end of the file is read, 1 MiB at most. Each member has records of its own: name it with --endpoints. With " +
			"-o json the records are printed as they stand in the file, a line each.",
		Example: "  quorate audit records --by alice --prefix /secrets/ --endpoints 10.0.0.1:2379",
		Args:    cobra.NoArgs,
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("by") {
			r.User = &user
		}
		if cmd.Flags().Changed("prefix") {
			r.Prefix = []byte(prefix)
		}
		if _, ok := audit.ParseOp(r.Operation); !ok && r.Operation != "" {
			return command.Usagef("--operation %s: one of %q", r.Operation, audit.Ops())
		}
		if r.Limit < 1 || r.Limit > mostRecords {
			return command.Usagef("--limit %d: give a number from 1 to %d", r.Limit, mostRecords)
		}
		question := func(ctx context.Context, api quoratepb.AuditClient) (*quoratepb.AuditRecords, error) {
			return api.Records(ctx, r)
		}
		answer, err := ask(cmd.Context(), c, question)
		if err != nil {
			return err
		}
		printRecords(c, answer)
		return nil
	}
	cmd.Flags().StringVar(&user, "by", "", "only calls in the name of this user; an empty name: calls without a user")
	cmd.Flags().StringVar(&prefix, "prefix", "", "only calls one of whose keys may lie below this prefix, as far as keys are "+
		"recorded")
	cmd.Flags().StringVar(&r.Operation, "operation", "", "only calls of this operation, as a policy names it")
	cmd.Flags().Int64Var(&r.Limit, "limit", defaultRecords, "how many records to print at most")
	return cmd
}

func printRecords(c *command.Connection, answer *quoratepb.AuditRecords) {
	if c.JSON() {
		for _, line := range answer.GetLines() {
			fmt.Fprintln(c.Streams.Out, printable.Lines(line, len(line)))
		}
		return
	}
	t := &command.Table{}
	t.Add("TIME (UTC)", "USER", "FROM", "OPERATION", "OUTCOME", "REVISION", "ABOUT")
	for _, line := range answer.GetLines() {
		e, ok := audit.ParseEntry([]byte(line))
		if !ok {
			continue
		}
		at, revision := e.Time.UTC().Format("2006-01-02 15:04:05.000"), ""
		if e.Revision != 0 {
			revision = strconv.FormatInt(e.Revision, 10)
		}
		if event := wording.RecordEvent(&e); event != "" {
			t.Add(at, "", "", e.Event, "", "", printable.Text(event, longest))
			continue
		}
		t.Add(at, printable.Text(e.User, longest), printable.Text(e.From, longest), e.Op, wording.RecordOutcome(&e), revision,
			printable.Text(wording.RecordAbout(&e), longest))
	}
	t.Print(c.Streams.Out)
	of := "at the end of " + printable.Text(answer.GetOutput(), longest)
	if answer.GetWhole() {
		of = "all of " + printable.Text(answer.GetOutput(), longest)
	}
	fmt.Fprintf(c.Streams.Err, "%s looked at, %s of member %s\n", plural.Of(answer.GetLookedAt(), "record"), of,
		command.HexID(answer.GetMember()))
}
