"""The specs of all feature gates of kube-scheduler by release: stage, default, and whether the gate is locked.

kube-scheduler's metric kubernetes_feature_enabled has the same gates. Gates without an effect on scheduling are
accepted on the command line and ignored. Release 1.36 is listed in full; a later release is listed by its changes.

Source: pkg/features/kube_features.go, SchedulerQueueingHints, GenericWorkload, TopologyAwareWorkloadScheduling;
component-base/featuregate/feature_gate.go, featureSpecAtEmulationAndMinCompatVersion (1.36).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class FeatureSpec:
    """The spec of a feature gate.

    Attributes:
        stage: `ALPHA`, `BETA`, `DEPRECATED`; empty for general availability.
    """

    stage: str
    default: bool
    locked: bool


_ALPHA_OFF: Final = """
APIServingWithRoutine AllAlpha AllowUnsafeMalformedObjectDeletion CBORServingAndStorage CPUManagerPolicyAlphaOptions
CRIListStreaming CSIVolumeHealth ClientsAllowCBOR ClientsPreferCBOR
CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ContainerStopSignals
CrossNamespaceVolumeDataSource DRAListTypeAttributes DRANodeAllocatableResources DRAResourcePoolStatus
DRAWorkloadResourceClaims EventedPLEG GangScheduling GenericWorkload HPAScaleToZero ImageVolumeWithDigest
InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory KubeletInUserNamespace
LoggingAlphaOptions ManifestBasedAdmissionControlConfig MemoryQoS MutablePVNodeAffinity NativeHistograms
PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodLevelResourceManagers PodLogsQuerySplitStreams
PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi ShardedListAndWatch
StorageCapacityScoring StorageVersionAPI TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling
TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport VolumeLimitScaling WindowsCPUAndMemoryAffinity
WorkloadAwarePreemption WorkloadWithJob
"""

_BETA_OFF: Final = """
AllBeta ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode CoordinatedLeaderElection
DRADeviceTaintRules LocalStorageCapacityIsolationFSQuotaMonitoring MaxUnavailableStatefulSet PodCertificateRequest
SELinuxMount SchedulerAsyncAPICalls StorageVersionMigrator
"""

_BETA_ON: Final = """
APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions CRDObservedGenerationTracking
ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz ComponentStatusz
ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules ContextualLogging DRAConsumableCapacity
DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource DRAPartitionableDevices DRAResourceClaimDeviceStatus
DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout DeclarativeValidationBeta
DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency EnvFiles ExtendWebSocketsToKubelet
GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HostnameOverride
InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingInitContainers
KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletSeparateDiskGC
KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge MutablePodResourcesForSuspendedJobs
MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures NominatedNodeNameForExpectation OpenAPIEnums
OpportunisticBatching PLEGOnDemandRelist PodDeletionCost PodLevelResources PodReadyToStartContainersCondition
PodTopologyLabelsAdmission PortForwardWebsockets PreventStaticPodAPIReferences RelaxedServiceNameValidation
ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus
ResourceHealthStatusMessage RestartAllContainersOnContainerExits RotateKubeletServerCertificate
SchedulerAsyncPreemption SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageVersionHash StrictIPCIDRValidation
StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics
TokenRequestServiceAccountUIDValidation TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests
UnauthenticatedHTTP2DOSMitigation UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO
WatchCacheInitializationPostStartHook WatchList WatchListClient WindowsGracefulNodeShutdown
"""

_DEPRECATED_OFF: Final = """
AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests ChangeContainerStatusOnKubeletRestart
DeclarativeValidationTakeover KMSv1 KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
"""

_DEPRECATED_OFF_LOCKED: Final = """
AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC
"""

_DEPRECATED_ON: Final = """
DisableCPUQuotaWithExclusiveCPUs KubeletPodResourcesListUseActivePods ServiceCIDRStatusFieldWiping
StorageNamespaceIndex
"""

_DEPRECATED_ON_LOCKED: Final = """
AggregatedDiscoveryRemoveBetaType DisableNodeKubeProxyVersion
"""

_GA_ON: Final = """
AllowServiceExternalIPs CustomCPUCFSQuotaPeriod DRAPrioritizedList InformerResourceVersion MutatingAdmissionPolicy
"""

_GA_ON_LOCKED: Final = """
APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors
AuthorizeWithSelectors BtreeWatchCache CPUManagerPolicyOptions CRDValidationRatcheting CSIServiceAccountTokenSecrets
ConsistentListFromCache CustomResourceFieldSelectors DRAAdminAccess DeclarativeValidation DisableAllocatorDualWrite
DynamicResourceAllocation ExecProbeTimeout ExternalServiceAccountTokenSigner ImageMaximumGCAge ImageVolume
InOrderInformers InPlacePodVerticalScaling JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy
JobSuccessPolicy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesDynamicResources
KubeletPodResourcesGet KubeletTracing LogarithmicScaleDown MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator
MutableCSINodeAllocatableCount NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap
OrderedNamespaceDeletion PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodObservedGenerationTracking
PodSchedulingReadiness PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure
RecursiveReadOnlyMounts RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation
ResilientWatchCacheInitialization RetryGenerateName SELinuxChangePolicy SELinuxMountReadWriteOncePod
SchedulerQueueingHints SeparateTaintEvictionController ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo SidecarContainers
StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions UserNamespacesSupport VolumeAttributesClass
WinDSR WinOverlay
"""


_GONE_IN_1_37: Final = """
APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors
AuthorizeWithSelectors BtreeWatchCache ConsistentListFromCache GangScheduling JobBackoffLimitPerIndex
JobPodReplacementPolicy JobSuccessPolicy LogarithmicScaleDown OrderedNamespaceDeletion PodLifecycleSleepAction
PodLifecycleSleepActionAllowZero PreventStaticPodAPIReferences RelaxedDNSSearchValidation
ResilientWatchCacheInitialization RetryGenerateName SchedulerQueueingHints SidecarContainers
StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
WorkloadAwarePreemption
"""

_ALPHA_OFF_SINCE_1_37: Final = """
APIServerWebhookAuthenticationToken AtomicWriteVolumeUserFields CompositePodGroup
ConsistentListFromCacheSkipTimeoutFallback DRADerivedAttributes DRADeviceCompatibilityGroups
DRAOptionalNodeOperations DRAPartitionableDevicesType DefaultPodSysctls EmptyDirVolumeMode EvictionRequestAPI
GRPCContainerProbeTLS H2CContainerProbe InPlacePodVerticalScalingMemoryBackedVolumes
InPlacePodVerticalScalingSchedulerPreemption InterPodAffinityHostnameFastPath KubeProxyNFTablesLocalhostNodePorts
KubeletAllocatedPodsEndpoint NodeLifecycleConditions PodGroupPreemptionPolicy SchedulerPreQueueingHints
StatefulSetRecreateStrategy VolumeBindMountOptions
"""

_BETA_OFF_SINCE_1_37: Final = """
DRAFractionalCapacityRange DRAWorkloadResourceClaims GenericWorkload PodAndContainerStatsFromCRI
PodLevelResourceManagers
"""

_BETA_ON_SINCE_1_37: Final = """
AllowUnsafeMalformedObjectDeletion ConcurrentWatchObjectDecode EtcdRangeStream
ExcludeAdmissionWebhookVirtualResources HPAGeneration HPAOptimizedSelectorStore HPAScaleToZero HugepageAwareEviction
KubeletInUserNamespace ManifestBasedAdmissionControlConfig MaxUnavailableStatefulSet MemoryQoS NFTablesNetlink
NativeHistograms NodeControllerLeaseCircuitBreaker PersistentVolumeClaimUnusedSinceTime
PodLevelResourcesFixDefaulting PodLevelResourcesFixKubeletQOSClass PodsAPI StaleControllerConsistencyHPA
StorageCapacityScoring VolumeLimitScaling WatchListCompression WebhookRoundTripLoadBalancing
"""

_DEPRECATED_OFF_LOCKED_SINCE_1_37: Final = "DeclarativeValidationTakeover"
_DEPRECATED_ON_SINCE_1_37: Final = "KubeProxyIPVS"
_DEPRECATED_ON_LOCKED_SINCE_1_37: Final = "DisableCPUQuotaWithExclusiveCPUs"

_GA_ON_SINCE_1_37: Final = """
ClusterTrustBundle ClusterTrustBundleProjection DRADeviceTaintRules DRADeviceTaints PodCertificateRequest SELinuxMount
StorageVersionMigrator
"""

_GA_ON_LOCKED_SINCE_1_37: Final = """
DRAExtendedResource DRAPrioritizedList DRAResourceClaimDeviceStatus HPAConfigurableTolerance HostnameOverride
InPlacePodVerticalScalingInitContainers NodeDeclaredFeatures PLEGOnDemandRelist PodReadyToStartContainersCondition
RelaxedServiceNameValidation WatchCacheInitializationPostStartHook
"""


def _expand(*groups: tuple[str, str, bool, bool]) -> dict[str, FeatureSpec]:
    """Return the specs of groups of (names, stage, default, locked)."""
    return {
        name: FeatureSpec(stage, default, locked) for names, stage, default, locked in groups for name in names.split()
    }


_SPECS_1_36: Final = _expand(
    (_ALPHA_OFF, "ALPHA", False, False),
    (_BETA_OFF, "BETA", False, False),
    (_BETA_ON, "BETA", True, False),
    (_DEPRECATED_OFF, "DEPRECATED", False, False),
    (_DEPRECATED_OFF_LOCKED, "DEPRECATED", False, True),
    (_DEPRECATED_ON, "DEPRECATED", True, False),
    (_DEPRECATED_ON_LOCKED, "DEPRECATED", True, True),
    (_GA_ON, "", True, False),
    (_GA_ON_LOCKED, "", True, True),
)

_CHANGES_IN_1_37: Final = _expand(
    (_ALPHA_OFF_SINCE_1_37, "ALPHA", False, False),
    (_BETA_OFF_SINCE_1_37, "BETA", False, False),
    (_BETA_ON_SINCE_1_37, "BETA", True, False),
    (_DEPRECATED_OFF_LOCKED_SINCE_1_37, "DEPRECATED", False, True),
    (_DEPRECATED_ON_SINCE_1_37, "DEPRECATED", True, False),
    (_DEPRECATED_ON_LOCKED_SINCE_1_37, "DEPRECATED", True, True),
    (_GA_ON_SINCE_1_37, "", True, False),
    (_GA_ON_LOCKED_SINCE_1_37, "", True, True),
)

FEATURE_SPECS: Final[Mapping[str, Mapping[str, FeatureSpec]]] = {
    "1.36": _SPECS_1_36,
    "1.37": {
        name: spec for name, spec in {**_SPECS_1_36, **_CHANGES_IN_1_37}.items() if name not in _GONE_IN_1_37.split()
    },
}
"""The specs by minor release and gate name. The gates `AllAlpha` and `AllBeta` set all gates of their stage."""
