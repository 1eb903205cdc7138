/**
 * Types of the page. JSDoc comments in the modules refer to them as `Page.Data` and so on.
 *
 * Times are ns in numbers of JavaScript, which are exact up to 2^53 ns (104 days). Instants are ns
 * since the start of the window. Rows are numbered from 0; -1 stands for no row.
 */
declare namespace Page {
  /** State of a thread: 0 unknown, 1 running, 2 runnable, 3 blocked; in intervals 4 is several. */
  type StateNumber = number;
  /** Reason of a wait, numbered as in `capture.proto`; 0 if it is unknown, or not blocked. */
  type ReasonNumber = number;

  /** A capture, decoded. */
  interface Data {
    meta: Meta;
    /** Unit of the values of samples: time, or events. */
    unit: "ns" | "events";
    /** Name of the events, if the unit is events. */
    eventName: string;
    functions: Functions;
    /** Stacks, merged by function: user frames, then kernel frames, root first. */
    tree: Tree;
    samples: Samples;
    threads: Thread[];
    processes: Process[];
    wakers: Wakers;
    waits: Waits;
    /** Texts of resources, as in the reports. */
    resources: string[];
    /** Names of all kinds; other tables refer to them by number. */
    names: string[];
    times: Times;
    losses: Losses;
    walkEnds: WalkEnds;
  }

  interface Meta {
    tool: string;
    toolVersion: string;
    commandLine: string[];
    host: string;
    kernel: string;
    cpus: number;
    targets: string;
    /** Start of the window, in ns of CLOCK_MONOTONIC. */
    startNs: number;
    /** Start of the window, in ms since 1970. */
    startUtcMs: number;
    lengthNs: number;
    /** Ns or events that each counted sample stands for; 1 for intervals. */
    each: number;
    /** Minimum and maximum length of intervals in ns; null for profiles of CPU samples. */
    lengths: { least: number; most: number; shortAreSampled: boolean } | null;
    /** Variance of the time by state (0 to 3), in percent of intervals that come at random; 0 if unknown. */
    bursts: [number, number, number, number];
    /** Minimum length in ns of intervals with a row of their own; -1 without a timeline. */
    timelineLeastNs: number;
  }

  /** Functions. Frames of one name, one kind and one language are one function. */
  interface Functions {
    count: number;
    names: string[];
    /** Kind: 0 unknown, 1 user, 2 kernel, 3 marker, 4 Python, 5 another language. */
    kinds: Uint8Array;
    /** Name of the module, such as `libc.so.6`; empty if it is unknown. */
    modules: string[];
    /** Name of the language, such as `java`; empty if no runtime interprets or compiles the function. */
    languages: string[];
  }

  /** A tree of functions in preorder: the node after a node is its first child. Node 0 is the root. */
  interface Tree {
    count: number;
    /** Number of the parent, which is smaller than the node's number; -1 for the root. */
    parent: Int32Array;
    /** Function; -1 for the root, -2 - g for the root of group g. */
    fn: Int32Array;
    /** Number after the last descendant: a node's descendants are `node + 1` to `end[node] - 1`. */
    end: Int32Array;
    depth: Int32Array;
  }

  /**
   * Columns of samples. After the samples of the capture come three samples of each thread (running,
   * runnable, blocked) without a value, which get the time of a time range that no stack explains.
   */
  interface Samples {
    count: number;
    /** Number of samples of the capture. */
    measured: number;
    thread: Int32Array;
    state: Uint8Array;
    reason: Uint8Array;
    /** 1 if the thread had no work: its wait is idle or dormant. */
    idle: Uint8Array;
    /** Leaf of the stack in `Data.tree`. */
    node: Int32Array;
    /** The wait, or -1. */
    wait: Int32Array;
    /** The chain of wakers of the sample or else of its wait, or -1. */
    chain: Int32Array;
    /** Time in ns, or number of events. */
    value: Float64Array;
    /** Number of intervals or CPU samples in the value. */
    events: Float64Array;
    longest: Float64Array;
    shortest: Float64Array;
    /** Sum of the squared lengths, in units of 2^20 ns². */
    squares: Float64Array;
    /** 1 if the intervals were sampled. */
    sampled: Uint8Array;
  }

  interface Thread {
    pid: number;
    tid: number;
    /** Name, or the first name in the samples if the thread has no account. */
    name: string;
    /** Name and IDs, such as `mariadbd 712/829`. Unique. */
    label: string;
    /** Name by which a link refers to the thread, such as `712/829`. Unique. */
    key: string;
    /** Number of the process in `Data.processes`. */
    process: number;
    hasClock: boolean;
    startedNs: number;
    endedNs: number;
    runningNs: number;
    runnableNs: number;
    blockedNs: number;
    voluntary: number;
    involuntary: number;
  }

  interface Process {
    pid: number;
    parent: number;
    /** Name of the first thread, or of the executable. */
    name: string;
    /** Name and ID. Unique. */
    label: string;
    executable: string;
    commandLine: string[];
    cgroup: string;
    isKernel: boolean;
  }

  /** Chains of wakers: chain c has the rows `first[c]` to `first[c + 1] - 1`, the thread's waker first. */
  interface Wakers {
    chains: number;
    first: Int32Array;
    /** Number of the waker's name in `Data.names`. */
    name: Int32Array;
    pid: Int32Array;
    tid: Int32Array;
    /** Number in `Data.threads`, or -1 for `[timer]` and threads outside the capture. */
    thread: Int32Array;
    isThread: Uint8Array;
    /** Leaf of the waker's stack in `Data.tree`. */
    node: Int32Array;
  }

  interface Waits {
    count: number;
    reason: Uint8Array;
    /** Number of the detail's name. */
    detail: Int32Array;
    /** Number of the resource, or -1. */
    resource: Int32Array;
    /** Number of the holder's name, or -1. */
    holder: Int32Array;
    holderPid: Int32Array;
    holderTid: Int32Array;
    chain: Int32Array;
    /** Number of a text in place of a chain, or -1. */
    endedBy: Int32Array;
    /** 0 unknown, 1 waiting, 2 idle, 3 dormant. */
    idleness: Uint8Array;
  }

  /** Rows of time, empty without a timeline. */
  interface Times {
    intervals: Intervals;
    timed: TimedSamples;
    events: ThreadEvents;
    spans: RequestSpans;
  }

  /** Intervals, ordered by thread and start. */
  interface Intervals {
    count: number;
    /** Thread t has the rows `first[t]` to `first[t + 1] - 1`. */
    first: Int32Array;
    start: Float64Array;
    length: Float64Array;
    /** 1 running, 2 runnable, 3 blocked, 4 several states. */
    state: Uint8Array;
    /** Sample that contains the length, or -1. In state 4: row of `mixed`. */
    sample: Int32Array;
    /** Times of the intervals of state 4: running, runnable, blocked. */
    mixed: [Float64Array, Float64Array, Float64Array];
  }

  /** Samples on CPUs with their times, ordered by thread and time. */
  interface TimedSamples {
    count: number;
    first: Int32Array;
    time: Float64Array;
    cpu: Int32Array;
    sample: Int32Array;
  }

  /** Events in the lives of threads, ordered by thread and time. */
  interface ThreadEvents {
    count: number;
    first: Int32Array;
    time: Float64Array;
    /** 1 started, 2 ended, 3 executed a program, 4 renamed. */
    change: Uint8Array;
    /** Number of the name since the event, or -1. */
    name: Int32Array;
  }

  interface RequestSpans {
    count: number;
    name: Int32Array;
    thread: Int32Array;
    start: Float64Array;
    length: Float64Array;
    parent: Int32Array;
  }

  interface Losses {
    events: number;
    stacks: number;
    threads: number;
    incompleteUser: number;
    times: number;
  }

  interface WalkEnds {
    root: number;
    byFramePointer: number;
    noMapping: number;
    readFailed: number;
    tooDeep: number;
    noRule: number;
    code32Bit: number;
  }

  /** Condition on stacks, by the name of a function. */
  interface Filter {
    /** `only` stacks with the function, only stacks `without` it, `hide` its frames. */
    kind: "only" | "without" | "hide";
    name: string;
  }

  /** State of the page. It has only names and times, so the URL's hash can hold it. */
  interface State {
    /** ID of the view. */
    view: string;
    /** Keys of threads; empty for all. */
    threads: string[];
    /** Names of states, see `STATE_NAMES`; empty for all. */
    states: string[];
    /** Names of reasons; empty for all. They limit blocked time only. */
    reasons: string[];
    /** Whether idle time is hidden. */
    idle: "hide" | "show";
    /** Time range, in ns since the start of the window. */
    range: [number, number] | null;
    filters: Filter[];
    /** Function that the flame graph shows with callers above and callees below; empty for none. */
    pivot: string;
    /** Text or `/regex/` to search for. */
    search: string;
    /** Options of views: `view.option` to value. Values equal to "" are absent. */
    options: Map<string, string>;
  }

  /** Result of a state for one capture. */
  interface Selected {
    data: Data;
    /** Tree with the frames that are not hidden. It is `data.tree` if no frame is hidden. */
    tree: Tree;
    /** Node in `tree` of each sample. */
    node: Int32Array;
    /** Value of each sample that is shown; 0 for hidden samples. */
    weight: Float64Array;
    /** Number of intervals or CPU samples of each sample that is shown. */
    count: Float64Array;
    /** Sum of `weight`. */
    shown: number;
    /** Sum of all samples of the capture. `shown` + `hidden` = `whole`. */
    whole: number;
    hidden: number;
    /** Part of `hidden` that only the idle chip hides. */
    idleHidden: number;
    /** Sum of `weight` by state (0 to 3). */
    byState: [number, number, number, number];
    /** Length of the window, or of the time range, in ns. */
    windowNs: number;
  }

  interface MenuEntry {
    text: string;
    /** Key that does the same, for display. */
    key?: string;
    act: () => void;
  }

  interface App {
    data: Data;
    /** The earlier capture of a comparison. */
    before: Data | null;
    state: State;
    selected: Selected;
    /** The same selection of `before`, without the time range. */
    selectedBefore: Selected | null;
    views: View[];
    /** Changes the state, and then updates the view. `push` adds an entry to the history. */
    setState(change: Partial<State>, how: "push" | "replace"): void;
    /** Returns the value of an option such as `table.sort`, or "". */
    option(name: string): string;
    setOption(name: string, value: string, how?: "push" | "replace"): void;
    /** Adds a filter unless it is set already. */
    addFilter(filter: Filter): void;
    /** Opens a menu at a place in the window; Esc returns the focus. */
    menu(x: number, y: number, entries: MenuEntry[]): void;
    /** Opens the menu of a function. `stack` is the folded stack to copy, or "". */
    functionMenu(x: number, y: number, fn: number, stack: string, first?: MenuEntry[]): void;
    /** Puts a text on the clipboard. */
    copy(text: string): void;
    /** Says something to screen readers and in the status line. */
    say(text: string): void;
    /** Formats a value in the unit of the capture. */
    value(value: number): string;
    /**
     * Colouring of the flame graph in place of states; null for states. `colour` gets a function of
     * `data` and returns a colour, and `legend` says in words what the colours mean.
     */
    colouring: Colouring | null;
  }

  /** A tree of frames as the flame graph draws it. Children are found when they are drawn. */
  interface DrawnTree {
    /** Children, heaviest first. */
    kids(node: number): Int32Array;
    /** Value over all states. */
    all(node: number): number;
    /** Value in a state. */
    total(node: number, state: number): number;
    /** Value of the node without its children. */
    self(node: number): number;
    /** Function; -1 for the root, -2 - l for the root of a group with label l. */
    fn(node: number): number;
    parent(node: number): number;
    /** Reason of most of the blocked time; -1 without blocked time. */
    reason(node: number): number;
  }

  interface Colouring {
    legend: string;
    colour(fn: number): string;
    /** A text for the tooltip. */
    describe(fn: number): string;
  }

  interface View {
    /** ID in the URL's hash: `summary`, `flame`, `table`, `timeline`, `wakers`, `compare`. */
    id: string;
    title: string;
    /** Whether the capture has something to show in the view. */
    isAvailable(app: App): boolean;
    /** Builds the view once, in an empty element (`summary`: in the first screen). */
    mount(root: HTMLElement, app: App): void;
    /** Shows the state. It is called only while the view is visible, and after each change then. */
    update(app: App): void;
    /** Is called before each update of any view, also if this view is not visible. */
    prepare?(app: App): void;
    /** Handles a key that no field took. Returns whether the view used it. */
    key?(event: KeyboardEvent, app: App): boolean;
    /** Goes to the next (1) or the previous (-1) match of the search. */
    stepMatch?(direction: number, app: App): void;
    /** Place among the matches, such as `3/17`, or "" without matches. */
    matchPlace?(app: App): string;
    /** What the view draws, for tests. */
    drawn?(): unknown;
    /** Keys for the help, with what they do. */
    keys?: [string, string][];
  }
}
