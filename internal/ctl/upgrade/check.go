package upgrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/ctl/command"
)

// Bounds of what a file that is asked for its version may take.
const (
	fileBytes   = 1 << 20
	fileTime    = 10 * time.Second
	mostVersion = 100 // characters of the version that it tells
)

// fileVersion is what `version -o json` of a build prints, as far as this package reads it.
type fileVersion struct {
	Version string `json:"version"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Level   struct {
		ReadsFrom uint32 `json:"reads_from"`
		ReadsTo   uint32 `json:"reads_to"`
	} `json:"level"`
}

// verdict is the result of one check.
type verdict struct {
	Check string `json:"check"`
	Good  bool   `json:"good"`
	Says  string `json:"says"`
}

func newCheck(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "check FILE",
		Short: "Ask a new build's file whether it may be started here, and whether the cluster is fit for it",
		Long: "Ask a new build's file whether it may be started here, and whether the cluster is fit for it; status 1 if " +
			"not.\n\n" +
			"The file is started as `FILE version -o json`, with an empty environment. It must be for this machine.",
		Example: "  quorate upgrade check ./quorate-new",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := askFile(cmd.Context(), args[0])
			if err != nil {
				return command.Refused(err)
			}
			status, err := call(cmd.Context(), c, askStatus)
			if err != nil {
				return err
			}
			cluster, jobs, err := describe(cmd.Context(), c)
			if err != nil {
				return err
			}
			return showVerdicts(c, judge(file, status, cluster, jobs))
		},
	})
}

// askFile starts a file with `version -o json`, and ends what it has started. The error is for an operator.
func askFile(ctx context.Context, path string) (*fileVersion, error) {
	if !strings.ContainsRune(path, os.PathSeparator) {
		path = "." + string(os.PathSeparator) + path // a file, not a command of the search path
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the new build: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory: name the file of the new build in it", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", path)
	case info.Mode()&0o111 == 0:
		return nil, fmt.Errorf("%s cannot be executed: chmod +x it, if it is the new build", path)
	}
	bounded, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	run := exec.CommandContext(bounded, path, "version", "-o", "json")
	run.Env, run.WaitDelay = []string{}, time.Second
	out := &head{most: fileBytes}
	run.Stdout = out
	end := inGroup(run)
	err = run.Run()
	end()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case out.overflowed:
		return nil, fmt.Errorf("%s is no build of Quorate: asked for its version, it prints more than %d KiB", path,
			fileBytes>>10)
	case bounded.Err() != nil:
		return nil, fmt.Errorf("%s is no build of Quorate: asked for its version, it did not end within %v, and was "+
			"killed", path, fileTime)
	case errors.Is(err, syscall.ENOEXEC):
		return nil, fmt.Errorf("%s does not run on this machine (%s/%s): it is a build for another one, damaged, or no program",
			path, runtime.GOOS, runtime.GOARCH)
	case err != nil:
		return nil, fmt.Errorf("%s does not tell its version (%w): it is no build of Quorate for this machine, or one from "+
			"before `version -o json`", path, err)
	}
	return readVersion(path, out.kept)
}

// readVersion reads what a file printed.
func readVersion(path string, printed []byte) (*fileVersion, error) {
	var version fileVersion
	err := json.Unmarshal(printed, &version)
	switch {
	case err != nil || version.Version == "":
		return nil, fmt.Errorf("%s does not answer as a build of Quorate", path)
	case version.Level.ReadsTo == 0 || version.Level.ReadsFrom > version.Level.ReadsTo:
		return nil, fmt.Errorf("%s does not say which feature levels it knows: it is a build of Quorate from before "+
			"these, or none", path)
	}
	version.Version = printable.Text(version.Version, mostVersion)
	return &version, nil
}

// head keeps the first bytes of an output, and refuses the rest.
type head struct {
	kept       []byte
	most       int
	overflowed bool
}

var errLong = errors.New("the output is too long")

func (h *head) Write(p []byte) (int, error) {
	if len(h.kept)+len(p) > h.most {
		h.overflowed = true
		return 0, errLong
	}
	h.kept = append(h.kept, p...)
	return len(p), nil
}

// judge decides whether a build may be started on the members of a cluster, one after the other.
func judge(file *fileVersion, status *quoratepb.UpgradeStatus, cluster *quoratepb.Cluster, jobs []*quoratepb.Job) []verdict {
	verdicts := []verdict{levelVerdict(file, status), buildVerdict(file, status)}
	hindered := Blockers(cluster, jobs)
	if len(hindered) == 0 {
		verdicts = append(verdicts, verdict{"members", true, "all are up and have caught up, and no change is under way"})
	}
	for _, text := range hindered {
		verdicts = append(verdicts, verdict{"members", false, text})
	}
	return verdicts
}

func levelVerdict(file *fileVersion, status *quoratepb.UpgradeStatus) verdict {
	active, reads := status.GetActive(), file.Level
	v := verdict{Check: "level"}
	switch {
	case reads.ReadsTo < active:
		v.Says = fmt.Sprintf("the cluster is at feature level %d, and build %s knows %d at most: it would refuse to start",
			active,
			file.Version, reads.ReadsTo)
	case reads.ReadsFrom > active:
		v.Says = fmt.Sprintf("build %s reads feature levels from %d on, and the cluster is at %d: upgrade to a build "+
			"between first",
			file.Version, reads.ReadsFrom, active)
	case reads.ReadsTo == active:
		v.Good, v.Says = true, fmt.Sprintf("build %s knows level %d, the active one: the former build may return at any "+
			"time", file.Version, active)
	default:
		v.Good, v.Says = true, fmt.Sprintf("build %s knows level %d; the cluster stays at level %d, and the former build "+
			"may return, until %s", file.Version, reads.ReadsTo, active, riseOf(status.GetPolicy()))
	}
	return v
}

// riseOf says what raises the level under a policy.
func riseOf(policy string) string {
	switch policy {
	case "hold":
		return "`quorate upgrade finalize` raises it (policy hold)"
	case "now":
		return "the last member runs it: the policy is now, and `quorate upgrade hold` keeps the way back"
	}
	return "the policy (" + policy + ") raises it"
}

func buildVerdict(file *fileVersion, status *quoratepb.UpgradeStatus) verdict {
	builds := buildsOf(status)
	if len(builds) == 1 && builds[0] == file.Version {
		return verdict{"build", false, "all members run build " + file.Version + " already"}
	}
	return verdict{"build", true, "members run " + strings.Join(builds, " and ") + "; the file is " + file.Version}
}

func showVerdicts(c *command.Connection, verdicts []verdict) error {
	good := true
	for _, v := range verdicts {
		good = good && v.Good
	}
	if c.JSON() {
		if err := command.PrintJSON(c.Streams.Out, verdicts); err != nil {
			return err
		}
	} else {
		writeVerdicts(c.Streams.Out, verdicts, good)
	}
	if !good {
		return command.ErrQuiet
	}
	return nil
}

func writeVerdicts(w io.Writer, verdicts []verdict, good bool) {
	t := &command.Table{}
	for _, v := range verdicts {
		word := "ok"
		if !v.Good {
			word = "NO"
		}
		t.Add(word, v.Check, v.Says)
	}
	t.Print(w)
	if good {
		fmt.Fprintln(w, "Save a snapshot first (`quorate snapshot save FILE`): it is the way back once the level has risen. "+
			"Then see `quorate upgrade plan`.")
	}
}
