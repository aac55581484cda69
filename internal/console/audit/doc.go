// Package audit is the pages of the console about the audit: which calls are recorded, where records go and whether the
// outputs take them, the latest records of the member that shows the console, and what the cluster keeps to verify files of
// records by; and a form that changes one rule of the policy, with a preview and the command that does the same.
//
// Outputs of all members come from what they observe. The policy, the heads and the records come from the service Audit, for
// users with the role root. To read these is a call that the policy may record: no section with them is loaded by itself.
//
// Invariants:
//  1. A form sets the policy that its preview has shown, or nothing: it names the version that it changes.
//  2. Nothing of a record, a rule or a member is markup.
//
// All functions may be called concurrently.
package audit
