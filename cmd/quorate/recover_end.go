package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
)

// parseLogEnd reads TERM:INDEX, the place of a log's last entry.
func parseLogEnd(text string) (consensus.Position, error) {
	first, second, _ := strings.Cut(text, ":")
	term, err1 := strconv.ParseUint(first, 10, 64)
	index, err2 := strconv.ParseUint(second, 10, 64)
	if err1 != nil || err2 != nil {
		return consensus.Position{}, fmt.Errorf("%w: --log-ends-at %s: write TERM:INDEX, as the metrics "+
			"quorate_raft_last_term and quorate_raft_last_index say", errUsage, text)
	}
	return consensus.Position{Term: consensus.Term(term), Index: consensus.Index(index)}, nil
}

// checkLogEnd refuses a log of a member that ends elsewhere than --log-ends-at says: what it lacks was judged by that end.
func checkLogEnd(text, member string, last consensus.Position) error {
	if text == "" {
		return nil
	}
	want, err := parseLogEnd(text)
	if err != nil || want == last {
		return err
	}
	return fmt.Errorf("the log of %s ends at entry %d of term %d, and not at entry %d of term %d as --log-ends-at says: the "+
		"cluster went on since then, or this is not the directory that was looked at. Nothing was changed. Look at what is "+
		"left once more before you give anything up", member, last.Index, last.Term, want.Index, want.Term)
}
