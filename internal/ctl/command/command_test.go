package command_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
)

func TestTable_Lines(t *testing.T) {
	var table command.Table
	table.Add("ID", "NAME")
	table.Add("a1", "größer", "x")
	table.Add("b", "")
	if got, want := strings.Join(table.Lines(), "\n"), "ID  NAME\na1  größer  x\nb"; got != want || table.Len() != 3 {
		t.Errorf("got %q, %d rows, want %q", got, table.Len(), want)
	}
}

// Ensure that a command line is judged before a member is asked.
func TestConnection_Open_usage(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"--endpoints=https://a:1,http://b:1", "name all members with https"},
		{"--endpoints=a", "endpoint a lacks a port: write a:2379"},
		{"--endpoints=,", "--endpoints names no member"},
		{"-o=xml", `--output "xml": choose table, json or yaml`},
		{"--timeout=0s", "--timeout 0s: give a time, such as 5s"},
	} {
		c := command.NewObjectConnection(command.Streams{})
		var got error
		cmd := c.AddTo(&cobra.Command{Use: "x", RunE: func(cmd *cobra.Command, _ []string) error {
			_, got = c.Open(cmd.Context())
			return nil
		}})
		cmd.SetArgs([]string{row.args})
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		failure, ok := errors.AsType[*command.Failure](got)
		if !ok || failure.Status != command.StatusUsage || !strings.Contains(failure.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", row.args, got, row.want)
		}
	}
}

func TestGroup(t *testing.T) {
	root := &cobra.Command{Use: "quorate", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(command.Group("fruit", "", &cobra.Command{Use: "apple", Run: func(*cobra.Command, []string) {}}))
	root.SetOut(io.Discard)
	for args, want := range map[string]string{
		"fruit": "fruit what? One of: apple", "fruit appel": `fruit has no "appel"; did you mean apple?`, "fruit apple": "",
	} {
		root.SetArgs(strings.Fields(args))
		got := ""
		if err := root.Execute(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
}
