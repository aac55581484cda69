package consensus

import "encoding/binary"

func appendIDs(dst []byte, ids []MemberID) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ids)))
	for _, id := range ids {
		dst = appendMember(dst, id)
	}
	return dst
}

func (r *reader) ids() []MemberID {
	n := r.count(8, idSize)
	if n == 0 {
		return nil
	}
	ids := make([]MemberID, n)
	for i := range ids {
		ids[i] = r.member()
	}
	return ids
}

func appendAttributes(dst []byte, m *Member) []byte {
	dst = appendMember(dst, m.ID)
	dst = binary.AppendUvarint(dst, uint64(len(m.Name)))
	dst = append(dst, m.Name...)
	dst = appendTexts(dst, m.PeerURLs)
	moves := len(m.FormerURLs) > 0
	var storage []byte
	if !m.Storage.IsZero() {
		storage = m.Storage[:]
	}
	dst = append(dst, flag(m.Promote)|flag(m.Joining)<<1|flag(moves)<<2|flag(storage != nil)<<3|flag(m.Cordoned)<<4)
	if moves {
		dst = appendTexts(dst, m.FormerURLs)
	}
	return append(dst, storage...)
}

func appendTexts(dst []byte, texts []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(texts)))
	for _, text := range texts {
		dst = binary.AppendUvarint(dst, uint64(len(text)))
		dst = append(dst, text...)
	}
	return dst
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

func (r *reader) attributes() Member {
	m := Member{ID: r.member(), Name: string(r.blob()), PeerURLs: r.texts()}
	positions := r.octet()
	m.Promote, m.Joining, m.Cordoned = positions&1 != 0, positions&2 != 0, positions&16 != 0
	if positions&4 != 0 {
		m.FormerURLs = r.texts()
	}
	if positions&8 != 0 {
		m.Storage = r.storage()
	}
	return m
}

func (r *reader) texts() []string {
	n := r.count(1, textSize)
	if n == 0 {
		return nil
	}
	texts := make([]string, n)
	for i := range texts {
		texts[i] = string(r.blob())
	}
	return texts
}

// AppendConfig encodes c after dst.
func AppendConfig(dst []byte, c *Config) []byte {
	dst = appendIDs(dst, c.Voters)
	dst = appendIDs(dst, c.Outgoing)
	dst = appendIDs(dst, c.Learners)
	dst = appendIDs(dst, c.LearnersNext)
	dst = binary.AppendUvarint(dst, uint64(len(c.Members)))
	for i := range c.Members {
		dst = appendAttributes(dst, &c.Members[i])
	}
	return dst
}

func (r *reader) config() Config {
	c := Config{Voters: r.ids(), Outgoing: r.ids(), Learners: r.ids(), LearnersNext: r.ids()}
	if n := r.count(memberMinBytes, memberSize); n > 0 {
		c.Members = make([]Member, n)
		for i := range c.Members {
			c.Members[i] = r.attributes()
		}
	}
	return c
}

// AppendConfigChange encodes c after dst: the payload of an EntryConfig.
func AppendConfigChange(dst []byte, c *ConfigChange) []byte {
	dst = append(dst, byte(c.Protocol), flag(c.Abort))
	dst = appendConfigID(dst, c.Replaces)
	dst = AppendConfig(dst, &c.Config)
	return appendIDs(dst, c.Tombs)
}

// DecodeConfigChange reads what AppendConfigChange wrote.
func DecodeConfigChange(src []byte) (c ConfigChange, rest []byte, err error) {
	r := reader{src: src}
	c = ConfigChange{
		Protocol: Protocol(r.octet()), Abort: r.octet()&1 != 0, Replaces: r.configID(), Config: r.config(), Tombs: r.ids(),
	}
	rest, err = r.end()
	return c, rest, err
}

// AppendChangeRequest encodes c after dst: the payload of a Proposal of kind EntryConfig.
func AppendChangeRequest(dst []byte, c *ChangeRequest) []byte {
	dst = append(dst, byte(c.Protocol), flag(c.Abort))
	dst = appendConfigID(dst, c.Expected)
	dst = binary.AppendUvarint(dst, uint64(len(c.Steps)))
	for i := range c.Steps {
		dst = append(dst, byte(c.Steps[i].Kind))
		dst = appendAttributes(dst, &c.Steps[i].Member)
	}
	return dst
}

// DecodeChangeRequest reads what AppendChangeRequest wrote.
func DecodeChangeRequest(src []byte) (c ChangeRequest, rest []byte, err error) {
	r := reader{src: src}
	c = ChangeRequest{Protocol: Protocol(r.octet()), Abort: r.octet()&1 != 0, Expected: r.configID()}
	if n := r.count(memberMinBytes+1, stepSize); n > 0 {
		c.Steps = make([]ChangeStep, n)
		for i := range c.Steps {
			c.Steps[i] = ChangeStep{Kind: ChangeKind(r.octet()), Member: r.attributes()}
		}
	}
	rest, err = r.end()
	return c, rest, err
}

// AppendConfigID encodes id after dst: the payload of an EntryNoop that settles the configuration id.
func AppendConfigID(dst []byte, id ConfigID) []byte { return appendConfigID(dst, id) }

// DecodeConfigID reads what AppendConfigID wrote.
func DecodeConfigID(src []byte) (id ConfigID, rest []byte, err error) {
	r := reader{src: src}
	id = r.configID()
	rest, err = r.end()
	return id, rest, err
}

// AppendSnapshotMeta encodes s after dst.
func AppendSnapshotMeta(dst []byte, s *SnapshotMeta) []byte {
	dst = appendPosition(dst, s.Position)
	dst = AppendConfig(dst, &s.Config)
	dst = appendConfigID(dst, s.ConfigID)
	dst = append(dst, byte(s.Protocol), flag(s.Open))
	return appendIDs(dst, s.Tombs)
}

// DecodeSnapshotMeta reads what AppendSnapshotMeta wrote.
func DecodeSnapshotMeta(src []byte) (s SnapshotMeta, rest []byte, err error) {
	r := reader{src: src}
	s = r.snapshotMeta()
	rest, err = r.end()
	return s, rest, err
}

func (r *reader) snapshotMeta() SnapshotMeta {
	return SnapshotMeta{
		Position: r.position(), Config: r.config(), ConfigID: r.configID(),
		Protocol: Protocol(r.octet()), Open: r.octet()&1 != 0, Tombs: r.ids(),
	}
}
