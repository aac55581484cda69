package wal

// Sealed builds a segment whose checksums are right around any items, for tests that go past the checksums.
func Sealed(identity Identity, items ...[]byte) []byte {
	h := header{identity: identity, number: 1}
	segment := appendHeader(nil, &h)
	for _, bytes := range items {
		offset := int64(len(segment))
		record := append(make([]byte, recordHeaderBytes), bytes...)
		sealRecord(record, h.seed(), offset, offset)
		segment = append(segment, record...)
		segment = append(segment, make([]byte, align(int64(len(segment)))-int64(len(segment)))...)
	}
	return segment
}

// Carried encodes the state that a segment of an empty log begins with.
func Carried() []byte { return new(carried).append(nil) }

// Items encodes batches as they stand in a record.
func Items(batches ...Batch) []byte {
	var b []byte
	for i := range batches {
		b = appendBatch(b, &batches[i])
	}
	return b
}
