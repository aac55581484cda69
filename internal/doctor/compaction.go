package doctor

import "fmt"

// compaction is the command that drops history, and the distance that it leaves: to compact the latest revision would end the
// watches and mirrors that lag. It leaves what the last ten windows wrote, and at least a tenth of the history, but drops a
// half.
func (p *patient) compaction() (cure, distance string) {
	revision, compacted, written := int64(0), int64(0), int64(0)
	for _, s := range p.answered() {
		if store := s.o.GetStore(); store.GetRevision() > 0 {
			if revision == 0 || store.GetRevision() < revision { // all members have that one
				revision = store.GetRevision()
			}
			compacted = max(compacted, store.GetCompactRevision())
			written = max(written, int64(s.o.GetCore().GetCommitted()))
		}
	}
	const why = "watches and mirrors that lag behind what is compacted end"
	history := revision - compacted
	if history < 2 {
		return "quorate compact REVISION", "choose a revision well behind that of `quorate endpoint status`: " + why
	}
	left := max(min(max(10*written, history/10), history/2), 1)
	return fmt.Sprintf("quorate compact %d", revision-left), fmt.Sprintf("this leaves the last %d revisions, since %s", left,
		why)
}
