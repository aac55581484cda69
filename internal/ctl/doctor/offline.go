package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/doctor"
)

// judgeStopped judges data directories of stopped members.
func (p *patient) judgeStopped(ctx context.Context, words []string) error {
	switch {
	case p.inspect == nil:
		return command.Refused(fmt.Errorf("this program cannot read data directories"))
	case len(words) == 0:
		return command.Usagef("usage: quorate doctor --offline DIR…, each as the --data-dir of a stopped member, or " +
			"DIR,WAL-DIR")
	}
	var all []doctor.Stopped
	for _, word := range words {
		dir, walDir, _ := strings.Cut(word, ",")
		s, err := p.inspect(ctx, dir, walDir, p.keys)
		if err != nil {
			return command.Refused(err)
		}
		all = append(all, s)
	}
	a := doctor.JudgeStopped(all)
	if p.JSON() {
		return command.PrintJSON(p.Streams.Out, a)
	}
	t := &command.Table{}
	t.Add("MEMBER", "ID", "EPOCH", "LAST-TERM", "LAST-ENTRY", "COMMITTED", "REVISION", "WRITTEN", "DIRECTORY")
	for i := range a.Ranked {
		s := &a.Ranked[i]
		name := s.Name
		if name == "" {
			name = "-"
		}
		t.Add(name, s.ID, command.Number(s.Epoch), command.Number(s.LastTerm), command.Number(s.LastIndex),
			command.Number(s.Commit), strconv.FormatInt(s.Revision, 10), time.UnixMilli(s.WrittenMS).Format(time.DateTime),
			s.Dir)
	}
	t.Print(p.Streams.Out)
	for _, text := range a.Sentences {
		command.Say(p.Streams.Out, text)
	}
	command.Say(p.Streams.Out, "→ "+a.Cure)
	return nil
}
