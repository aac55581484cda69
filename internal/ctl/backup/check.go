package backup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/place"
	"github.com/quorate/quorate/internal/storage/objects/probe"
	"github.com/quorate/quorate/internal/storage/objects/retry"
)

// New is the command `quorate backup`.
func New(s command.Streams, verify Verifier) *cobra.Command {
	return command.Group("backup", "Ship a continuous backup, try where it shall go, and see and prove what is there",
		newStart(s), newStop(s), newStatus(s), newCheck(s), newList(s), newRetention(s), newVerify(s, verify))
}

const long = `Try the place that URL names, as a backup would use it: list, write a small object, read it, find it, see that
it is kept when another is written under its name, and delete it. Nothing else at the place is touched, and nothing stays.

URL is file:///DIRECTORY, or s3://BUCKET/PREFIX with these parameters, for Amazon S3 and servers that speak its protocol:
  endpoint=https://HOST:PORT  the server; left out for Amazon
  region=REGION               otherwise AWS_REGION, AWS_DEFAULT_REGION, or us-east-1
  path-style=true             the bucket in the path of URLs; the default with an endpoint
  ca=FILE                     authorities of the server's certificate; the default are the system's
  credentials=FILE            in the format of Amazon's programs; the default are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
  profile=NAME                section of that file

Exit status: 0 the place can be used; 1 it refuses, or does something else; 2 the URL makes no sense; 3 it cannot be reached, or
is busy.`

const example = `  quorate backup check file:///mnt/backups
  quorate backup check 's3://backups/prod?endpoint=https://minio.example:9000&ca=/etc/ssl/minio.pem'`

var formats = []string{"table", "json"}

// patience tries again for a few seconds: a person waits.
var patience = retry.Policy{Attempts: 3, First: 500 * time.Millisecond, Most: 2 * time.Second}

// memory is what the command's operations may hold.
const memory = 64 << 20

// check is one run of the command.
type check struct {
	streams command.Streams
	output  string
	timeout time.Duration
}

func newCheck(s command.Streams) *cobra.Command {
	k := &check{streams: s}
	c := &cobra.Command{
		Use:     "check URL",
		Short:   "Write, read, list and delete an object where backups shall go, and say what is wrong",
		Long:    long,
		Example: example,
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return k.run(c.Context(), args[0]) },
	}
	c.Flags().StringVarP(&k.output, "output", "o", formats[0], command.Alternatives(formats))
	c.Flags().DurationVar(&k.timeout, "timeout", time.Minute, "how long to try, but for the deletion at the end")
	return c
}

func (k *check) run(ctx context.Context, url string) error {
	if k.output != formats[0] && k.output != formats[1] {
		return command.Usagef("--output %q: choose %s", k.output, command.Alternatives(formats))
	}
	at, err := place.Parse(url)
	if err != nil {
		return command.Usagef("%w", err)
	}
	store, err := place.Open(at, place.Options{FS: files.Disk, Getenv: k.streams.Env, Retry: patience, Memory: memory})
	if err != nil {
		return command.Refused(explained(at, err))
	}
	defer store.Close()
	inTime, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	defer store.Traces(probe.Dir)()
	report := probe.Run(inTime, store, strings.ToLower(rand.Text()), time.Now)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return k.print(at, store.Warnings, report)
}

// explained adds what to do to an error of a place.
func explained(at *place.Place, err error) error {
	if advice := place.Advice(err); advice != "" {
		return fmt.Errorf("%s: %w. %s", at, err, advice)
	}
	return fmt.Errorf("%s: %w", at, err)
}

// status is how the command ends after an error of a place.
func status(err error) int {
	if objects.Passing(err) || errors.Is(err, context.DeadlineExceeded) {
		return command.StatusUnreachable
	}
	return command.StatusRefused
}

func (k *check) print(at *place.Place, warnings []string, report *probe.Report) error {
	err := report.Err()
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no end within --timeout %s: %w", k.timeout, err)
	}
	if k.output == formats[1] {
		printErr := command.PrintJSON(k.streams.Out, asJSON(at, warnings, report, err))
		if err == nil || printErr != nil {
			return printErr
		}
		return &command.Failure{Status: status(err), Err: command.ErrQuiet}
	}
	for _, warning := range warnings {
		command.Say(k.streams.Err, "warning: "+warning)
	}
	var t command.Table
	t.Add("STEP", "RESULT", "TOOK")
	for _, step := range report.Steps {
		result := "ok"
		if step.Err != nil {
			result = "failed"
		}
		t.Add(step.Name, result, step.Took.Round(10*time.Microsecond).String())
	}
	t.Print(k.streams.Out)
	for _, note := range report.Notes {
		fmt.Fprintln(k.streams.Out, note)
	}
	if err != nil {
		return &command.Failure{Status: status(err), Err: explained(at, err)}
	}
	_, err = fmt.Fprintf(k.streams.Out, "%s can hold backups.\n", at)
	return err
}

// reportJSON is a report as programs get it.
type reportJSON struct {
	Place    string     `json:"place"`
	OK       bool       `json:"ok"`
	Error    string     `json:"error,omitempty"`
	Advice   string     `json:"advice,omitempty"`
	Steps    []stepJSON `json:"steps"`
	Notes    []string   `json:"notes"`
	Warnings []string   `json:"warnings"`
}

type stepJSON struct {
	Name    string  `json:"name"`
	OK      bool    `json:"ok"`
	Seconds float64 `json:"seconds"`
}

func asJSON(at *place.Place, warnings []string, report *probe.Report, err error) reportJSON {
	out := reportJSON{Place: at.String(), OK: err == nil, Steps: []stepJSON{}, Notes: append([]string{}, report.Notes...),
		Warnings: append([]string{}, warnings...)}
	if err != nil {
		out.Error, out.Advice = err.Error(), place.Advice(err)
	}
	for _, step := range report.Steps {
		out.Steps = append(out.Steps, stepJSON{step.Name, step.Err == nil, step.Took.Seconds()})
	}
	return out
}
