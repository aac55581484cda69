package key

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
)

// New makes the command and its verbs.
func New(s command.Streams) *cobra.Command {
	return command.Group("key", "Look at the keys of an encrypted data directory, and rotate them", newStatus(s), newRotate(s))
}

// ask is a method of the service.
type ask func(context.Context, quoratepb.EncryptionClient) (*quoratepb.EncryptionStatus, error)

func verb(s command.Streams, cmd *cobra.Command, ask ask) *cobra.Command {
	c := command.NewObjectConnection(s)
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if n := c.Named(); n > 1 {
			return command.Usagef("--endpoints names %d members, and each has its own keys: name one", n)
		}
		var answer *quoratepb.EncryptionStatus
		err := c.Do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) (err error) {
			answer, err = ask(ctx, quoratepb.NewEncryptionClient(client.ActiveConnection()))
			return err
		})
		if err != nil {
			return err
		}
		if !c.Tabular() {
			return c.PrintObject(answer)
		}
		show(s, answer)
		return nil
	}
	return c.AddTo(cmd)
}

func newStatus(s command.Streams) *cobra.Command {
	return verb(s, &cobra.Command{
		Use: "status", Short: "Show the keys of a member's data directory, and how many bytes each one has",
	}, func(ctx context.Context, api quoratepb.EncryptionClient) (*quoratepb.EncryptionStatus, error) {
		return api.Status(ctx, &quoratepb.EncryptionStatusRequest{})
	})
}

func newRotate(s command.Streams) *cobra.Command {
	return verb(s, &cobra.Command{
		Use: "rotate", Short: "Begin a new key for new files of a member, wrapped by what its key file or key service has now",
		Long: "Begin a new key for new files of a member. The member reads its --encryption-key-file again, or asks its key " +
			"service, and wraps all keys anew. Files that are there keep their keys until they are rewritten: the log as it " +
			"is used, the store by its compactions, or all of it by `quorate defrag`. Each member has its own keys: name one " +
			"with --endpoints.",
		Example: "  quorate key rotate --endpoints 10.0.0.1:2379",
	}, func(ctx context.Context, api quoratepb.EncryptionClient) (*quoratepb.EncryptionStatus, error) {
		return api.Rotate(ctx, &quoratepb.RotateKeyRequest{})
	})
}

// mostName bounds the name of a key that a plug-in chose, in characters.
const mostName = 100

func show(s command.Streams, a *quoratepb.EncryptionStatus) {
	command.Say(s.Out, fmt.Sprintf("member %s: its keys are wrapped by %s, key %s", command.HexID(a.GetMember()),
		printable.Text(a.GetProvider(), mostName), printable.Text(a.GetWrappedBy(), mostName)))
	t := &command.Table{}
	t.Add("KEY", "CREATED", "FILES", "BYTES", "")
	for _, k := range a.GetKeys() {
		active := ""
		if k.GetActive() {
			active = "new files"
		}
		t.Add(k.GetId(), time.Unix(k.GetCreatedSeconds(), 0).UTC().Format(time.RFC3339), fmt.Sprint(k.GetFiles()),
			progress.Size(k.GetBytes()), active)
	}
	t.Print(s.Out)
	if plain := a.GetPlainBytes(); plain > 0 {
		command.Say(s.Out, fmt.Sprintf("%s are not encrypted: they were put there from elsewhere", progress.Size(plain)))
	}
}
