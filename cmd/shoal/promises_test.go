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
		"passwords are guessed":                                            "TestPasswordAttempts_guessingGetsSlower",
		"passwords are sent to use up the processor":                       "TestPasswordSignIn_limitsConcurrentHashes",
		"many keys are made up":                                            "TestUnknownKeys_manyKeysCauseFewQuestionsToTheLeader",
		"strangers fill the log":                                           "TestRequestsOfStrangers_doNotGrowTheRaftLog TestProviderSignIn_failuresWriteNothingToTheRaftLog",
		"requests that no client sends":                                    "TestRequestsOfStrangers_neverMakeANodeFail",
		"a session is planted in a browser":                                "TestSignIn_replacesThePreviousSession",
		"another site sends a form, or a sign-in":                          "TestSignIn_refusalSetsNoCookieAndLeadsNowhereElse TestSignIn_refusesAnotherBrowserProviderOrALateReturn",
		"a provider answers for another one":                               "TestSignIn_refusesAnotherBrowserProviderOrALateReturn",
		"tokens of a provider are made up or changed":                      "TestOpenID_refusesForgedOrMisdirectedAnswers",
		"an account is taken over by its address":                          "TestLinkIdentity_byEmailNeedsProofOnBothSides",
		"somebody shows the token of another person, or a misread one":     "TestLinkToken_refusesWrongTokensWithoutShowingThem",
		"the reader is led to another site":                                "TestSignIn_refusalSetsNoCookieAndLeadsNowhereElse",
		"a page uses another name of this machine":                         "TestHostHeader_isAcceptedOnlyForKnownNames",
		"a step of a sign-in meets a dead node, or is sent twice":          "TestSignInFlows_continueOrRestartAfterFaults",
		"the last owner is locked out":                                     "TestUnlinkIdentity_isRefusedForTheLastWayToSignIn",
		"a node missed a revocation":                                       "TestStaleNode_acceptsNoCredential",
		"an old back-up is restored":                                       "TestRestore_endsSessionsAndAccessThatMayHaveBeenRevoked TestRestoreFromSnapshot_makesANewCluster",
		"a back-up is stolen":                                              "TestConfiguration_isEncryptedOnDisk TestRestoreFromSnapshot_makesANewCluster",
		"the clock of a node is set back":                                  "TestExpiredCredential_staysExpiredIfTheClockIsSetBack TestExpiredToken_staysExpiredIfTheClockIsSetBack",
		"a repository leads to the objects of a hidden one":                "TestHostileLocalRepository_cannotShowAnotherRepository TestNonInterference_hiddenRepositoriesChangeNoAnswer",
		"a node speaks for a viewer who sees more":                         "TestPermissionCheck_isRepeatedByTheNodeWithTheData",
		"an owner's key is stolen, and a configuration sends secrets away": "TestAllowance_limitsWhatAConfigurationFromTheNetworkMayReference TestApplyConfig_limitsWhatOwnersMayReference",
		"a provider was taken over, and is removed":                        "TestSessions_endWhenTheirProviderIsRemoved TestHostAccess_needsAnIdentityProvider",
		"a token is stolen":                                                "TestAgentAccessToken_worksOnlyForTheMCPServer TestTokenRefresh_concurrentRefreshesGetTheSameToken TestTokenRefresh_anOldTokenEndsTheConsent",
		"a code is stolen":                                                 "TestTokenExchange_wrongRequestsKeepTheCode TestTokenExchange_aRepeatedCodeGivesTheSameTokensOrEndsTheConsent",
		"tokens are made up, changed, or taken for one another":            "TestSealedTokens_ofOneKindAreRefusedAsAnother FuzzTokens_onlySealedTextsOpen",
		"the reader is sent elsewhere":                                     "TestRedirectURL_mustBeSafe TestConsentPage_showsTheAgentAndTakesOnlyItsOwnForm FuzzRedirect_leadsOnlyToRegisteredURLs FuzzAuthorize_neverRedirectsElsewhere",
		"a client takes another's name":                                    "TestConsentPage_showsTheAgentAndTakesOnlyItsOwnForm TestClientName_losesUnsafeCharacters",
		"another site decides, or frames the page":                         "TestConsentPage_showsTheAgentAndTakesOnlyItsOwnForm TestConsent_isDecidedOnlyByThePersonAsked",
		"a program with a key lets in agents that outlive it":              "TestConsentPage_showsTheAgentAndTakesOnlyItsOwnForm TestConsent_endsWithAccountOrKey TestAgentAccess_endsWithTheKeyOfItsSignIn",
		"authorization servers are mixed up":                               "TestAuthorize_refusesInvalidRequests",
		"a client's document is at an address inside the network":          "TestClientDocument_refusesUnsafeAddresses TestClientDocument_isFetchedOnlyFromPublicAddresses TestClientDocument_isFetchedOnlyForSignedInPeople TestClientDocuments_aboveTheLimitsAreNeitherFetchedNorStored TestClientDocument_refusesInvalidDocuments",
		"strangers fill the log or the memory with clients":                "TestOAuthRequestsOfStrangers_writeNothingToTheRaftLog TestAgentRegistration_isRateLimited",
		"a page uses the tools through a visitor's browser":                "TestCrossOriginPage_learnsNothingThatNeedsACookie",
		"somebody who has left still has agents":                           "TestAgentAccess_endsWithAccountConsentOrClient TestPutConsent_refusedAfterAccountChange",
		"an owner's agent administers":                                     "TestAgentToken_hasAtMostTheMemberRole",
	},
	"reference/oauth.md": {
		"compare `resource` with what was typed, letter by letter":                "TestOAuthMetadata_namesTheServersOwnAddresses",
		"compare `issuer` with where they found it":                               "TestOAuthMetadata_namesTheServersOwnAddresses",
		"send `resource` with other letters, a port, a slash, twice, or none":     "TestAuthorize_acceptsVariantsOfScopeAndResource",
		"ask for scopes that there are not":                                       "TestAuthorize_acceptsVariantsOfScopeAndResource",
		"name a loopback address without a port and come with one":                "TestRedirectURL_mustBeSafe",
		"register a scheme of their own beside others":                            "TestClientRegistration_acceptsRealClients",
		"send `application_type`, secrets' methods, members nobody knows":         "TestClientRegistration_acceptsRealClients",
		"look for metadata at the path of the resource, for `/token` at the root": "TestOAuthMetadata_namesTheServersOwnAddresses TestAgentRegistration_isRateLimited",
		"show their id by HTTP Basic first, then in the form":                     "TestTokenExchange_succeedsWithEachStepAtAnotherNode TestTokenExchange_wrongRequestsKeepTheCode",
		"refresh from several processes at once":                                  "TestTokenRefresh_concurrentRefreshesGetTheSameToken",
		"lose an answer and ask again with the same code":                         "TestTokenExchange_aRepeatedCodeGivesTheSameTokensOrEndsTheConsent",
		"use a token at a node that has not heard of it yet":                      "TestAgentToken_aLaggingNodeWaitsInsteadOfRefusing",
		"take any other error than `invalid_grant` as a reason to try again":      "TestTokenExchange_withoutALeaderLosesNothing",
		"keep a client id for months":                                             "TestTokenSecrets_areRenewedWithoutEndingTokens",
		"run in a browser":                                                        "TestCrossOriginPage_learnsNothingThatNeedsACookie",
		"want `iss` in the answer, on refusals too":                               "TestAuthorize_refusesInvalidRequests",
	},
}

// permissionTests are the tests of the tables in docs/reference/permissions.md, row by row.
var permissionTests = []string{
	"TestAccountSync_lossOfMuchAccessMustBeRepeated", "TestRepositorySync_lossOfManyReadersMustBeRepeated", "TestPermissionAnswer_expiresAfterSeveralIntervals", "TestPermissionAnswers_completeAnswerThatBeganLastDecides", "TestExpireAccess_oldPermissionAnswersGiveNoAccess",
	"TestHostAccess_endsWithIdentityProviderOrAccount", "TestPermissionAnswers_partialAnswersRemoveNoReader", "TestPersonRefusal_isToldApartFromTokenRefusal", "TestReadableRepositories_areNoneIfAPageFails",
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
