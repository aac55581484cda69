package audit

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/ctl/command"
)

// ask calls the Audit service.
func ask[Answer any](
	ctx context.Context, c *command.Connection, question func(context.Context, quoratepb.AuditClient) (Answer, error),
) (answer Answer, err error) {
	err = c.Do(ctx, func(ctx context.Context, client *clientv3.Client) (err error) {
		answer, err = question(ctx, quoratepb.NewAuditClient(client.ActiveConnection()))
		return err
	})
	return answer, err
}

func askPolicy(ctx context.Context, api quoratepb.AuditClient) (*quoratepb.AuditPolicy, error) {
	return api.Policy(ctx, &quoratepb.AuditPolicyRequest{})
}

func newShow(s command.Streams) *cobra.Command {
	c := command.NewObjectConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "show",
		Short: "Print the policy, and how the outputs of the member are that answers",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			policy, err := ask(cmd.Context(), c, askPolicy)
			if err != nil {
				return err
			}
			return show(c, policy)
		},
	})
}

// longest bounds a text of a member that is printed.
const longest = 300

// show prints the policy to the output, and the rest to where a person reads it: so the output can be set again.
func show(c *command.Connection, policy *quoratepb.AuditPolicy) error {
	if !c.Tabular() {
		return c.PrintObject(policy)
	}
	if policy.GetVersion() == 0 {
		fmt.Fprintln(c.Streams.Err, "no policy is set: nothing is recorded")
	} else {
		fmt.Fprintln(c.Streams.Out, printable.Lines(policy.GetPolicy(), audit.MaxPolicyBytes))
	}
	if len(policy.GetOutputs()) == 0 {
		fmt.Fprintln(c.Streams.Err, "the member that answers records nothing: it was started without --audit-log")
		return nil
	}
	t := &command.Table{}
	t.Add("OUTPUT", "MODE", "RECORDS", "DROPPED", "STATE")
	for _, sink := range policy.GetOutputs() {
		mode, state := "best effort", "takes records"
		if sink.GetRequired() {
			mode = "required"
		}
		if sink.GetTrouble() != "" {
			state = printable.Text(sink.GetTrouble(), longest)
		}
		if sink.GetBlocked() {
			state = "calls are refused: " + state
		}
		t.Add(printable.Text(sink.GetName(), longest), mode, fmt.Sprint(sink.GetRecords()), fmt.Sprint(sink.GetDropped()),
			state)
	}
	t.Print(c.Streams.Err)
	return nil
}

func newSet(s command.Streams) *cobra.Command {
	c := command.NewObjectConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "set FILE",
		Short: "Set the policy from a file of JSON",
		Long: "Set the policy from a file of JSON; - reads the input. The members follow at once. The first rule that " +
			"matches " +
			"a call says at which level it is recorded: none, metadata or request; a call that no rule matches is not " +
			"recorded.",
		Example: `  echo '{"rules": [{"level": "none", "operations": ["range", "watch"]},
			{"level": "metadata"}]}' > policy.json` + "\n" +
			"  quorate audit policy set policy.json",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readPolicy(s, args[0])
			if err != nil {
				return err
			}
			return set(cmd.Context(), c, text)
		},
	})
}

func readPolicy(s command.Streams, name string) (text []byte, err error) {
	from := s.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, command.Usagef("the policy cannot be read: %w", err)
		}
		defer f.Close()
		from = f
	}
	if text, err = io.ReadAll(io.LimitReader(from, audit.MaxPolicyBytes+1)); err != nil {
		return nil, command.Usagef("the policy cannot be read: %w", err)
	}
	if _, err := audit.Parse(text); err != nil {
		return nil, command.Usagef("%s: %w", name, err)
	}
	return text, nil
}

func set(ctx context.Context, c *command.Connection, text []byte) error {
	before, err := ask(ctx, c, askPolicy)
	if err != nil {
		return err
	}
	after, err := ask(ctx, c, func(ctx context.Context, api quoratepb.AuditClient) (*quoratepb.AuditPolicy, error) {
		return api.SetPolicy(ctx, &quoratepb.SetAuditPolicyRequest{Policy: string(text), Version: before.GetVersion()})
	})
	if err != nil {
		return err
	}
	return show(c, after)
}

func newHeads(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "heads",
		Short: "Print the heads that the cluster keeps of all members' records, for `verify --heads`",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			heads, err := askHeads(cmd.Context(), c)
			if err != nil {
				return err
			}
			return audit.WriteHeads(s.Out, heads)
		},
	})
}

func askHeads(ctx context.Context, c *command.Connection) (heads []audit.Head, err error) {
	answer, err := ask(ctx, c, func(ctx context.Context, api quoratepb.AuditClient) (*quoratepb.AuditHeads, error) {
		return api.Heads(ctx, &quoratepb.AuditHeadsRequest{})
	})
	if err != nil {
		return nil, err
	}
	for _, h := range answer.GetHeads() {
		if len(h.GetSum()) != audit.SumBytes {
			return nil, fmt.Errorf("the cluster has a head with a sum of %s: use a program of its build",
				plural.Of(len(h.GetSum()), "byte"))
		}
		heads = append(heads, audit.Head{Member: h.GetMember(), Chain: h.GetChain(), Sequence: h.GetSequence(),
			At: time.UnixMilli(h.GetUnixMillis()), Sum: audit.Sum(h.GetSum()), File: printable.Text(h.GetFile(), longest)})
	}
	return heads, nil
}
