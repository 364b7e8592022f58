package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// promises are the rows of tables in documents, by the text of their first cell, with their
// tests.
var promises = map[string]map[string]string{
	"explanation/threat-model.md": {
		"passwords are guessed":                                            "TestAttempts_guessingGetsSlower",
		"passwords are sent to use up the processor":                       "TestBeginWithPassword_limitsConcurrentHashes",
		"many keys are made up":                                            "TestUnknownKeys_manyKeysCostFewQuestions",
		"strangers fill the log":                                           "TestStrangers_floodDoesNotGrowTheLog TestProviderSignIn_failuresWriteNothing",
		"requests that no client sends":                                    "TestStrangers_cannotMakeANodeFail",
		"a session is planted in a browser":                                "TestBegin_replacesThePreviousSession",
		"another site sends a form, or a sign-in":                          "TestSignIn_refusals TestSignIn_refusesAnotherBrowserProviderOrALateReturn",
		"a provider answers for another one":                               "TestSignIn_refusesAnotherBrowserProviderOrALateReturn",
		"tokens of a provider are made up or changed":                      "TestOpenID_refusesWrongAnswers",
		"an account is taken over by its address":                          "TestLinkIdentity_byEmailNeedsProofOnBothSides",
		"somebody shows the token of another person, or a misread one":     "TestLinkToken_refuses",
		"the reader is led to another site":                                "TestSignIn_refusals",
		"a page uses another name of this machine":                         "TestHostRule",
		"a step of a sign-in meets a dead node, or is sent twice":          "TestSigninFlows_surviveFaults",
		"the last owner is locked out":                                     "TestUnlinkIdentity_refusedForTheLastWayIn",
		"a node missed a revocation":                                       "TestStaleNode_acceptsNoCredential",
		"an old back-up is restored":                                       "TestRefound_endsWhatMayHaveBeenRevoked TestRestore_makesANewCluster",
		"a back-up is stolen":                                              "TestConfiguration_isSealedOnDisk TestRestore_makesANewCluster",
		"the clock of a node is set back":                                  "TestLater_clockSetBackRevivesNothing TestTokens_clockSetBackRevivesNothing",
		"a repository leads to the objects of a hidden one":                "TestForeign_leadsToNoOtherRepository TestOracle",
		"a node speaks for a viewer who sees more":                         "TestGate_nodeWithTheDataChecksTheViewerAgain",
		"an owner's key is stolen, and a configuration sends secrets away": "TestAllowance TestApplyConfig_limitsOwners",
		"a provider was taken over, and is removed":                        "TestSessions_endWithTheirProvider TestHostAccess_needsAnIdentityProvider",
		"a token is stolen":                                                "TestAccessToken_onlyForTheMCPServer TestRefresh_concurrentOnesGetTheSameToken TestRefresh_oldTokenEndsTheConsent",
		"a code is stolen":                                                 "TestExchange_wrongRequestsKeepTheCode TestExchange_codeWorksOnce",
		"tokens are made up, changed, or taken for one another":            "TestBoxes_ofOneKindDoNotOpenAsAnother FuzzTokens",
		"the reader is sent elsewhere":                                     "TestGoodRedirect TestConsentPage FuzzRedirect FuzzAuthorize",
		"a client takes another's name":                                    "TestConsentPage TestCleanName",
		"another site decides, or frames the page":                         "TestConsentPage TestDecide_onlyByThePersonAsked",
		"a program with a key lets in agents that outlive it":              "TestConsentPage TestConsent_endsWithAccountOrKey TestAgent_endsWithTheKeyOfItsSignIn",
		"authorization servers are mixed up":                               "TestAuthorize_refuses",
		"a client's document is at an address inside the network":          "TestGoodAddress_refuses TestPublicOnly TestDocument_onlyForSignedInPeople TestDocuments_fetchLimits TestReadDocument_refuses",
		"strangers fill the log or the memory with clients":                "TestStrangers_writeNothingToTheLog TestAgents_rateLimit",
		"a page uses the tools through a visitor's browser":                "TestCrossOriginAgents",
		"somebody who has left still has agents":                           "TestAgent_endsWith TestPutConsent_refusedAfterAccountChange",
		"an owner's agent administers":                                     "TestAuthenticate_memberAtMost",
	},
	"reference/oauth.md": {
		"compare `resource` with what was typed, letter by letter":                "TestOAuth_metadata",
		"compare `issuer` with where they found it":                               "TestOAuth_metadata",
		"send `resource` with other letters, a port, a slash, twice, or none":     "TestAuthorize_acceptsVariants",
		"ask for scopes that there are not":                                       "TestAuthorize_acceptsVariants",
		"name a loopback address without a port and come with one":                "TestGoodRedirect",
		"register a scheme of their own beside others":                            "TestRegister_acceptsRealClients",
		"send `application_type`, secrets' methods, members nobody knows":         "TestRegister_acceptsRealClients",
		"look for metadata at the path of the resource, for `/token` at the root": "TestOAuth_metadata TestAgents_rateLimit",
		"show their id by HTTP Basic first, then in the form":                     "TestExchange_overThreeNodes TestExchange_wrongRequestsKeepTheCode",
		"refresh from several processes at once":                                  "TestRefresh_concurrentOnesGetTheSameToken",
		"lose an answer and ask again with the same code":                         "TestExchange_codeWorksOnce",
		"use a token at a node that has not heard of it yet":                      "TestAuthenticate_laggingNodeWaits",
		"take any other error than `invalid_grant` as a reason to try again":      "TestExchange_withoutALeaderLosesNothing",
		"keep a client id for months":                                             "TestRings_renewSecrets",
		"run in a browser":                                                        "TestCrossOriginAgents",
		"want `iss` in the answer, on refusals too":                               "TestAuthorize_refuses",
	},
}

// permissionTests are the tests of the tables in docs/reference/permissions.md, row by row.
var permissionTests = []string{
	"TestAccountSync_answers", "TestRepoSync_answers", "TestAnswersEnd", "TestObservations_theLastBegunCounts", "TestAgeAccess_oldObservationsDoNotCount",
	"TestHostAccess_endsWithIdentityProviderOrAccount", "TestObservations_partialOnesOnlyAdd", "TestPersonal_refusals", "TestReadable_allOrNothing",
}

// Every attack and every client behaviour in a document has existing tests.
func TestPromises_haveTests(t *testing.T) {
	t.Parallel()
	names := declared(sources(t))
	for _, test := range permissionTests {
		if !names[test] {
			t.Errorf("there is no test %s", test)
		}
	}
	for page, rows := range promises {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, row := range tableRows(string(text), "attack", "what clients do") {
			found++
			if rows[row] == "" {
				t.Errorf("docs/%s promises something that no test holds: %s", page, row)
			}
			for _, test := range strings.Fields(rows[row]) {
				if !names[test] {
					t.Errorf("%s: there is no test %s", row, test)
				}
			}
		}
		if found != len(rows) {
			t.Errorf("docs/%s has %d rows, want the %d of promises", page, found, len(rows))
		}
	}
}

// tableRows returns the first cells of tables whose head begins with one of these words.
func tableRows(text string, heads ...string) (rows []string) {
	for table := range strings.SplitSeq(text, "\n\n") {
		lines := strings.Split(strings.TrimSpace(table), "\n")
		for _, head := range heads {
			if !strings.HasPrefix(lines[0], "| "+head+" |") || len(lines) < 3 {
				continue
			}
			for _, line := range lines[2:] {
				rows = append(rows, strings.TrimSpace(strings.Split(line, "|")[1]))
			}
		}
	}
	return rows
}
