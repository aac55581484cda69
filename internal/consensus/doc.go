// Package consensus defines the terms of agreement: Term, Index, Entry, Config, ConfigID, Message, Proposal.
//
// It has types, their laws and their binary encoding, and no protocol: how entries get their order is package raft,
// what they mean is package kv, to which a payload is opaque bytes here. Everything is plain data, safe to copy, and
// safe to share once no goroutine writes to it any more; byte slices inside an Entry or Message are never modified after they
// were handed over.
//
// Laws of every value in use:
//  1. An entry is identified by (Index, Term): two members that have the same pair have the same entry and the same
//     log before it (Raft paper, section 5.3, "Log Matching").
//  2. A ConfigID names the entry that introduced a configuration and is never used twice, even for one rolled back.
//  3. A ProposalID is stable across retries; the second entry that carries it changes nothing when applied.
package consensus
