package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/doctor"
)

// Bounds of mutes: one that lasts for ever is one that is forgotten.
const (
	defaultMute = 24 * time.Hour
	mostMute    = 90 * 24 * time.Hour
	mostMutes   = 1 << 20 // bytes of their file
)

// addMutesTo adds the flag of the file that mutes are in.
func (p *patient) addMutesTo(cmd *cobra.Command) {
	file := p.Streams.Env("QUORATE_DOCTOR_MUTES")
	if home := p.Streams.Env("HOME"); file == "" && home != "" {
		file = filepath.Join(home, ".config", "quorate", "doctor-mutes.json")
	}
	cmd.Flags().StringVar(&p.mutes, "mutes", file, "file of this operator with what 'quorate doctor mute' silences "+
		"(or QUORATE_DOCTOR_MUTES)")
}

// readMutes reads them; a file that is not there has none.
func readMutes(path string) ([]doctor.Mute, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, command.Refused(err)
	case len(text) > mostMutes:
		return nil, command.Refused(fmt.Errorf("%s has more than %d bytes: it is no file of mutes", path, mostMutes))
	}
	var mutes []doctor.Mute
	if err := json.Unmarshal(text, &mutes); err != nil {
		return nil, command.Refused(fmt.Errorf("%s is no file of mutes: %w", path, err))
	}
	return mutes, nil
}

// writeMutes writes those that stand.
func writeMutes(path string, mutes []doctor.Mute) error {
	if path == "" {
		return command.Usagef("there is no place for mutes: give --mutes FILE")
	}
	text, err := json.MarshalIndent(doctor.Standing(mutes, time.Now().UnixMilli()), "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return command.Refused(err)
	}
	return writeWhole(path, append(text, '\n'))
}

func newMute(s command.Streams) *cobra.Command {
	p := &patient{Connection: command.NewConnection(s)}
	var last time.Duration
	var member string
	cmd := p.AddTo(&cobra.Command{
		Use:   "mute CODE",
		Short: "Silence a finding of now, for a time, for this operator",
		Long: "Silence a finding of now. It ends with its time, when the finding gets worse, and when it is about one " +
			"more member.\nMutes are in a file of this operator's, and change neither metrics nor what others see.",
		Example: "  quorate doctor mute DISK_SLOW --for 24h\n  quorate doctor mute LEVEL_HELD --member m3",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, words []string) error {
			return p.mute(cmd, strings.ToUpper(words[0]), member, last)
		},
	})
	cmd.Flags().DurationVar(&last, "for", defaultMute, "how long")
	cmd.Flags().StringVar(&member, "member", "", "only what is about this member")
	p.addMutesTo(cmd)
	return cmd
}

func (p *patient) mute(cmd *cobra.Command, word, member string, last time.Duration) error {
	code, known := doctor.Known(word)
	switch {
	case !known:
		return command.Usagef("%s is no code; `quorate doctor` shows them, and docs/doctor.md has all", word)
	case last <= 0 || last > mostMute:
		return command.Usagef("--for %v: give a time up to %d days, such as 24h", last, int(mostMute.Hours()/24))
	}
	collected, err := collect(cmd.Context(), p.Connection)
	if err != nil {
		return err
	}
	mutes, err := readMutes(p.mutes)
	if err != nil {
		return err
	}
	muted := 0
	until := time.Now().Add(last)
	for _, f := range doctor.Judge(collected) {
		if f.Code != code || member != "" && !slices.Contains(f.Members, member) {
			continue
		}
		m := doctor.Mute{Cluster: clusterOf(collected), Code: code, Severity: f.Severity, Members: f.Members,
			UntilMS: until.UnixMilli()}
		if member != "" {
			m.Members = []string{member}
		}
		mutes = append(mutes, m)
		muted++
		fmt.Fprintf(p.Streams.Out, "muted until %s: %s\n", until.Format(time.RFC3339), f.Sentence)
	}
	if muted == 0 {
		return command.Refused(fmt.Errorf("%s is not found now, so there is nothing to mute: a mute ends when a finding "+
			"gets worse "+
			"than it is now", code))
	}
	return writeMutes(p.mutes, mutes)
}

func newUnmute(s command.Streams) *cobra.Command {
	p := &patient{Connection: command.NewConnection(s)}
	cmd := &cobra.Command{
		Use: "unmute CODE", Short: "Hear a finding again", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, words []string) error {
			mutes, err := readMutes(p.mutes)
			if err != nil {
				return err
			}
			left := slices.DeleteFunc(slices.Clone(mutes), func(m doctor.Mute) bool {
				return string(m.Code) == strings.ToUpper(words[0])
			})
			if len(left) == len(mutes) {
				return command.Refused(fmt.Errorf("%s is not muted", words[0]))
			}
			return writeMutes(p.mutes, left)
		},
	}
	p.addMutesTo(cmd)
	return cmd
}

func newMutes(s command.Streams) *cobra.Command {
	p := &patient{Connection: command.NewConnection(s)}
	cmd := &cobra.Command{
		Use: "mutes", Short: "List what is muted, and until when", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			mutes, err := readMutes(p.mutes)
			if err != nil {
				return err
			}
			t := &command.Table{}
			t.Add("CODE", "CLUSTER", "MEMBERS", "SEVERITY", "UNTIL")
			for _, m := range doctor.Standing(mutes, time.Now().UnixMilli()) {
				members := strings.Join(m.Members, ",")
				if members == "" {
					members = "-"
				}
				t.Add(string(m.Code), command.HexID(m.Cluster), members, m.Severity.String(),
					time.UnixMilli(m.UntilMS).Format(time.RFC3339))
			}
			t.Print(p.Streams.Out)
			return nil
		},
	}
	p.addMutesTo(cmd)
	return cmd
}
