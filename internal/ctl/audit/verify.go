package audit

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/ctl/command"
)

func newVerify(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	saved := ""
	cmd := c.AddTo(&cobra.Command{
		Use:   "verify FILE...",
		Short: "Find records that were changed, removed or put elsewhere in files of records",
		Long: "Find records that were changed, removed or put elsewhere in files of records.\n\n" +
			"Give all files of a member, also those that were put aside (.gz too), in any order. Each record has the sum " +
			"of the " +
			"one before it, and the heads that the cluster keeps are compared; --heads takes them from a file that " +
			"`quorate audit heads` wrote before, and asks no cluster. The status is 0 if all is intact and a head " +
			"agrees, 1 if something was changed, removed or put elsewhere, and 6 if nothing was found, but no head proves it.",
		Example: "  quorate audit verify /var/log/quorate/audit*.log",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			heads, err := headsFor(cmd.Context(), c, saved)
			if err != nil {
				return err
			}
			return verify(c, args, heads)
		},
	})
	cmd.Flags().StringVar(&saved, "heads", "", "file with the heads, instead of the cluster")
	return cmd
}

func headsFor(ctx context.Context, c *command.Connection, saved string) ([]audit.Head, error) {
	if saved == "" {
		heads, err := askHeads(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("the heads cannot be had from the cluster (--heads FILE takes them from a file): %w", err)
		}
		return heads, nil
	}
	f, err := os.Open(saved)
	if err != nil {
		return nil, command.Usagef("--heads: %w", err)
	}
	defer f.Close()
	heads, err := audit.ReadHeads(f)
	if err != nil {
		return nil, command.Usagef("--heads %s: %w", saved, err)
	}
	return heads, nil
}

// verify reads the files and prints what is found.
func verify(c *command.Connection, names []string, heads []audit.Head) error {
	var files []audit.File
	for _, name := range names {
		f, err := openRecords(name)
		switch {
		case damagedArchive(err):
			return brokenArchive(err)
		case err != nil:
			return command.Usagef("%w", err)
		}
		defer f.Close()
		files = append(files, audit.File{Name: name, Lines: f})
	}
	report, err := audit.Verify(files, heads)
	switch {
	case damagedArchive(err):
		return brokenArchive(err)
	case err != nil:
		return notProved(fmt.Errorf("not proved: a file cannot be read: %w", err))
	}
	if err := print(c, report, len(names)); err != nil {
		return err
	}
	switch {
	case report.Broken():
		return command.Refused(command.ErrQuiet)
	case report.Heads == 0:
		return notProved(command.ErrQuiet)
	}
	return nil
}

// notProved is the outcome of a verification that found no damage, and cannot say that there is none.
func notProved(why error) error { return &command.Failure{Status: command.StatusNotProved, Err: why} }

func brokenArchive(err error) error {
	return command.Refused(fmt.Errorf("broken: a file cannot be unpacked (%w): it was changed or damaged, unless the "+
		"member is packing it just now: try again", err))
}

// damagedArchive reports whether the bytes of a file that is packed are not as they were written.
func damagedArchive(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &corrupt)
}

// opened is a file, behind what unpacks it.
type opened struct {
	io.Reader
	file *os.File
}

// Close implements io.Closer.
func (o *opened) Close() error { return o.file.Close() }

func openRecords(name string) (*opened, error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file of records", name)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil || !strings.HasSuffix(name, ".gz") {
		return &opened{f, f}, err
	}
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return &opened{unpacked, f}, nil
}

// verdict is the report as JSON.
type verdict struct {
	Records uint64   `json:"records"`
	Heads   int      `json:"heads_that_agree"`
	Intact  bool     `json:"intact"`
	Proved  bool     `json:"proved"`
	Broken  []string `json:"broken"`
	Notes   []string `json:"notes"`
}

// mostFindings bounds what is printed of each kind.
const mostFindings = 50

func print(c *command.Connection, r *audit.Report, files int) error {
	v := verdict{Records: r.Records, Heads: r.Heads, Intact: !r.Broken(), Proved: !r.Broken() && r.Heads > 0,
		Broken: []string{}, Notes: []string{}}
	for _, f := range r.Findings {
		to := &v.Notes
		if f.Broken {
			to = &v.Broken
		}
		if len(*to) < mostFindings {
			*to = append(*to, printable.Text(f.Text, 4*longest))
		}
	}
	if c.JSON() {
		return json.NewEncoder(c.Streams.Out).Encode(&v)
	}
	out := c.Streams.Out
	for _, text := range v.Broken {
		command.Say(out, "broken: "+text)
	}
	for _, text := range v.Notes {
		command.Say(out, "note: "+text)
	}
	word := "intact"
	switch {
	case !v.Intact:
		word = "not intact"
	case !v.Proved:
		word = "not proved"
	}
	command.Say(out, fmt.Sprintf("%s: %s in %s, %s of the cluster %s", word, plural.Of(r.Records, "record"),
		plural.Of(files, "file"), plural.Of(r.Heads, "head"), plural.Word(r.Heads, "agrees", "agree")))
	return nil
}
